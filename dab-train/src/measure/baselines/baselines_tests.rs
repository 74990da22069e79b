//! The baselines together, on generated and on stored data.

use super::*;
use crate::{
    data::{DataConfig, Split, load},
    support::random::Random,
};

/// Three Gaussian classes in four dimensions, and an OOD set far from all.
fn blobs() -> Task {
    let mut random = Random::new(4, "baselines");
    let mut split = |rows: usize| {
        let labels: Vec<u32> = (0..rows).map(|i| (i % 3) as u32).collect();
        let rows: Vec<[f32; 4]> = labels
            .iter()
            .map(|&l| {
                std::array::from_fn(|j| (random.normal() + 5.0 * f64::from(u8::from(j == l as usize))) as f32)
            })
            .collect();
        Split { inputs: Table::from_rows(&rows).unwrap(), targets: Targets::Classes { labels, count: 3 } }
    };
    let (train, held_out, test) = (split(600), split(150), split(300));
    let far = (0..200).map(|_| random.normal() as f32 - 4.0).collect();
    Task {
        name: "blobs".into(),
        train,
        held_out,
        test,
        ood: vec![("far".into(), Table::new(50, 4, far).unwrap())],
    }
}

#[test]
fn distances_find_a_far_set() {
    let task = blobs();
    let baselines = on_features(&task).unwrap();
    let names: Vec<&str> = baselines.scored.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["MSP", "energy", "Mahalanobis", "relative Mahalanobis", "1-NN", "10-NN", "−L2 norm"]);
    let Targets::Classes { labels, .. } = &task.test.targets else { panic!("classes") };
    let correct = classification::correct(baselines.test_logits.as_ref().unwrap(), labels);
    for scored in &baselines.scored {
        let report = scored.report(Some(&correct)).unwrap();
        assert_eq!(report.ood[0].1.prevalence, 50.0 / 350.0);
        if ["Mahalanobis", "1-NN", "10-NN"].contains(&scored.name.as_str()) {
            assert!(report.ood[0].1.auroc > 0.99, "{}: {:?}", scored.name, report.ood[0].1);
        }
    }
}

#[test]
fn regression_has_no_logits() {
    let config: DataConfig = toml::from_str("kind = \"regression-clusters\"\npoints = 50").unwrap();
    let baselines = on_features(&load(&config, 0, std::path::Path::new("unused")).unwrap()).unwrap();
    let names: Vec<&str> = baselines.scored.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["Mahalanobis", "1-NN", "10-NN", "L2 norm"]);
    // Outside [−4, 4] is exactly where |x| is larger.
    assert_eq!(baselines.scored[3].report(None).unwrap().ood[0].1.auroc, 1.0);
}

#[test]
fn msp_does_not_tie_where_softmax_saturates() {
    let logits = Table::from_rows(&[[100.0, 0.0], [50.0, 0.0], [0.0, 0.0]]).unwrap();
    let scores = msp(&logits);
    assert!(scores[0] < scores[1] && scores[1] < 1e-20 && scores[2] == 0.5, "{scores:?}");
    assert_eq!(energy(&logits)[..2], [-100.0, -50.0]);
}

#[test]
fn raw_inputs_of_any_size_score_finite() {
    let mut task = blobs();
    task.ood.push(("huge".into(), Table::new(1, 4, vec![f32::MAX, -f32::MAX, 0.0, 1.0]).unwrap()));
    for scored in on_features(&task).unwrap().scored {
        assert!(scored.ood[1].1[0].is_finite(), "{}: {:?}", scored.name, scored.ood[1].1);
    }
}

#[test]
fn energy_is_nearly_trivial_for_distances() {
    let config: DataConfig = toml::from_str("kind = \"uci\"\nscaling = [\"own\", \"raw\"]").unwrap();
    let found = crate::stored::data("energy_is_nearly_trivial_for_distances", "uci/energy_efficiency.csv.gz");
    let Some(root) = found else { return };
    let baselines = on_features(&load(&config, 0, &root).unwrap()).unwrap();
    let report = baselines.scored[0].report(None).unwrap();
    assert!(report.ood.iter().all(|(_, d)| d.auroc > 0.999), "{report:?}");
}
