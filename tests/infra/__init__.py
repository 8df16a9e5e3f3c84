"""Tests of what operators apply: the manifests for Kubernetes, held against the product."""
