#!/usr/bin/env bash
# Prints the linker's flags that give a program of k8s.io/kubernetes its version, as
# Kubernetes' own build sets it. The version is that of the dev cluster's module.
set -euo pipefail
cd "$(dirname "$0")/../devcluster"

version=$(GOWORK=off go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
base=k8s.io/component-base/version
echo "-X $base.gitVersion=$version -X $base.gitMajor=$major -X $base.gitMinor=$minor -X $base.gitTreeState=clean"
