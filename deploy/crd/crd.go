// Package crd holds the custom resources that Muster serves: AppWrappers in both
// groups. It is data only; package install applies it.
package crd

import _ "embed"

var (
	//go:embed appwrappers.yaml
	appWrappers []byte
	//go:embed appwrappers-mcad.yaml
	appWrappersMCAD []byte
)

// Documents returns the definitions, one YAML document each.
func Documents() [][]byte { return [][]byte{appWrappers, appWrappersMCAD} }
