"""The names of the shipped workloads, with what each is; apart from them, as help lists them without loading any."""

from __future__ import annotations

GROUP = "partita.workloads"
"""the entry points by which installed packages add workloads"""

SUMMARIES = {
    "mlp": "a perceptron, its layers spread over GPUs",
    "cnn": "a small CNN for images of 32 x 32, its layers spread over GPUs",
    "resnet50": "ResNet-50 as a pipeline of micro-batches over GPUs",
    "transformer": "an encoder, heads and hidden units split over GPUs",
    "reduction": "GPUs add up their arrays, at once or in a tree",
    "training": "data-parallel training of a perceptron, parameters on the host",
    "gpt": "GPT-2 and GPT-3, from a config.json, spread by a split",
    "llama": "Llama, Qwen2 or Mistral, from a config.json, spread by a split",
    "moe": "Mixtral, DeepSeek V2 or V3, from a config.json, spread by a split",
    "bert": "BERT as a masked language model, from a config.json, spread by a split",
    "vit": "a vision transformer, from a config.json, spread by a split",
    "dlrm": "a recommendation model, its embedding tables shared out over devices, from a file of sizes",
    "image_training": "one step of gradient descent of ResNet-50, ResNet-152, InceptionV3, VGG16 or AlexNet",
}
