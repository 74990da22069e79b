//! The last layer of the user's own network, from a safetensors file.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use safetensors::SafeTensors;

use super::pack::tensors::Tensors;
use crate::learn::retrofit::Affine;

/// Reads `weight`, `[classes, inputs]`, and `bias`, `[classes]`, zeros without. Names may have a prefix, as in `fc.weight`, if
/// there is only one such tensor.
pub fn read(path: &Path) -> Result<Affine> {
    let name = path.display();
    let bytes = crate::support::limits::read(path).with_context(|| format!("cannot read {name}"))?;
    parse(&bytes).with_context(|| format!("{name} is no last layer"))
}

fn parse(bytes: &[u8]) -> Result<Affine> {
    let file = SafeTensors::deserialize(bytes).context("it is no safetensors file")?;
    let weights: Vec<String> =
        file.names().into_iter().filter(|name| is(name, "weight")).map(ToString::to_string).collect();
    ensure!(
        weights.len() == 1,
        "it has {} tensors called weight, a last layer has one: save {{\"weight\": [classes, inputs], \"bias\": [classes]}}",
        weights.len()
    );
    let tensors = Tensors::new(file);
    let weight = tensors.require(&weights[0], "[classes, inputs]", "")?;
    let (classes, inputs) =
        weight.matrix("[classes, inputs]", "save the matrix that multiplies the features")?;
    let prefix = weights[0].strip_suffix("weight").unwrap_or_default();
    let name = format!("{prefix}bias");
    if let Some(bias) = tensors.get(&name)?
        && bias.shape == [inputs]
        && inputs != classes
    {
        let expected = format!("[{inputs} classes, {classes} inputs], because `{name}` has {inputs} numbers");
        return Err(weight.misshapen(&expected, "transpose it").into());
    }
    let bias = tensors.vector(&name, classes, "one number a class")?;
    Ok(Affine { weight: weight.narrow()?, bias: bias.unwrap_or_else(|| vec![0.0; classes]) })
}

fn is(name: &str, part: &str) -> bool {
    name == part || name.strip_suffix(part).is_some_and(|prefix| prefix.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::weights::serialized;

    fn file(tensors: &[(&str, Vec<usize>)]) -> Vec<u8> {
        let tensor = |(name, shape): &(&str, Vec<usize>)| {
            let bytes = (0..shape.iter().product()).flat_map(|i: usize| (i as f32).to_le_bytes());
            ((*name).to_owned(), shape.clone(), bytes.collect())
        };
        serialized(&tensors.iter().map(tensor).collect::<Vec<_>>(), None).unwrap()
    }

    #[test]
    fn a_layer_is_found_by_its_names() {
        let own = parse(&file(&[("fc.weight", vec![2, 3]), ("fc.bias", vec![2])])).unwrap();
        assert_eq!((own.weight.len(), own.bias), (6, vec![0.0, 1.0]));
        assert_eq!(parse(&file(&[("weight", vec![2, 3])])).unwrap().bias, [0.0, 0.0]);
    }

    #[test]
    fn what_is_no_layer_says_why() {
        let said = |tensors: &[(&str, Vec<usize>)]| format!("{:#}", parse(&file(tensors)).unwrap_err());
        assert!(
            said(&[("a.weight", vec![2, 3]), ("b.weight", vec![2, 3])]).contains("2 tensors called weight")
        );
        assert!(said(&[("weight", vec![6])]).contains("[classes, inputs]"));
        assert!(
            said(&[("weight", vec![2, 3]), ("bias", vec![4])]).contains("`bias` has shape [4], expected [2]")
        );
        // Keras stores it the other way round.
        let turned = said(&[("fc.weight", vec![64, 8]), ("fc.bias", vec![8])]);
        assert!(
            turned.contains("`fc.weight` has shape [64, 8], expected [8 classes, 64 inputs]")
                && turned.ends_with("transpose it"),
            "{turned}"
        );
        assert!(format!("{:#}", parse(b"words").unwrap_err()).contains("no safetensors file"));
    }
}
