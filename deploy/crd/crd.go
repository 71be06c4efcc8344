// Package crd holds custom resources: AppWrappers in both groups, which Muster serves, and
// the kinds with which Kueue configures queues, for clusters without Kueue. It is data only;
// package install applies it.
package crd

import (
	_ "embed"
	"strings"
)

var (
	//go:embed appwrappers.yaml
	appWrappers []byte
	//go:embed appwrappers-mcad.yaml
	appWrappersMCAD []byte
	//go:embed kueue.yaml
	kueue string
)

// Documents returns the definitions of AppWrappers, one YAML document each.
func Documents() [][]byte { return [][]byte{appWrappers, appWrappersMCAD} }

// Kueue returns the definitions of Kueue's kinds, one YAML document each.
func Kueue() [][]byte {
	var documents [][]byte
	for _, document := range strings.Split(kueue, "\n---\n") {
		documents = append(documents, []byte(document))
	}
	return documents
}
