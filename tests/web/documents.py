"""The pipelines that seeded runs came from."""

from __future__ import annotations

DIGITS = """\
# Handwritten digits: two models side by side, and the better one kept.
metadata:
  name: digits
  project: demo
  labels:
    team: vision
parameters:
  epochs:
    type: int
    default: 30
    description: How often the training looks at every picture
steps:
  - name: fetch
    command: [python, fetch.py]
    outputs:
      pictures: pictures.npz
  - name: features
    needs: [fetch]
    command: [python, features.py]
    resources:
      requests: { cpu: "2", memory: 4Gi }
  - name: train
    needs: [features]
    command: [python, train.py, --epochs, "${{ params.epochs }}"]
    retries: 1
    resources:
      requests: { cpu: "2", memory: 4Gi }
  - name: baseline
    needs: [features]
    command: [python, baseline.py]
  - name: evaluate
    needs: [train, baseline]
    command: [python, evaluate.py]
"""

SWEEP = """\
metadata:
  name: lr-sweep
  project: vision
  labels:
    team: vision
parameters:
  epochs: 12
  dataset: { default: digits, choices: [digits, fashion] }
steps:
  - name: prepare
    command: [python, prepare.py]
  - name: train
    needs: [prepare]
    command: [python, train.py, --lr, "${{ matrix.lr }}", --seed, "${{ matrix.seed }}"]
    matrix:
      lr: ["0.001", "0.002", "0.003", "0.004", "0.005", "0.006"]
      seed: ["0", "1", "2", "3", "4", "5", "6", "7", "8"]
    resources:
      requests: { cpu: "2", memory: 4Gi }
  - name: choose
    needs: [train]
    command: [python, choose.py]
"""

FINETUNE = """\
metadata:
  name: llm-finetune
  project: llm
  labels:
    team: nlp
steps:
  - name: tokenise
    command: [python, tokenise.py]
  - name: train
    needs: [tokenise]
    image: registry.example.org/train:2.4
    command: [torchrun, train.py]
    resources:
      requests: { cpu: "32", memory: 256Gi, nvidia.com/gpu: 8 }
  - name: evaluate
    needs: [train]
    command: [python, evaluate.py]
  - name: publish
    needs: [evaluate]
    command: [python, publish.py]
"""
