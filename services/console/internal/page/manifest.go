package page

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// Manifest is the page of what was submitted.
type Manifest struct {
	Link   string // of the workload
	Lines  string // YAML
	Masked int
	// Cut means that the rest is left out.
	Cut bool
}

// mostManifest bounds the text of a manifest on its page: five times as much as HTML is still
// far below 1 MB.
const mostManifest = 128 << 10

// MakeManifest makes the page of a manifest whose secrets are masked.
func MakeManifest(r workload.Record, answer query.ManifestAnswer) (Manifest, error) {
	m := Manifest{Link: WorkloadLink(r.ID), Masked: answer.Masked}
	if answer.Manifest == nil {
		return m, nil
	}
	text, err := yaml.JSONToYAML(answer.Manifest)
	if err != nil {
		return m, fmt.Errorf("write the manifest of workload %s as YAML: %w", r.ID, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	var shown strings.Builder
	for _, line := range lines {
		line = indented(line)
		if shown.Len()+len(line) > mostManifest {
			m.Cut = true
			break
		}
		shown.WriteString(line + "\n")
	}
	m.Lines = shown.String()
	return m, nil
}

// indented keeps the indentation of a line, and writes out what moves a cursor or changes the
// direction of writing.
func indented(line string) string {
	text := strings.TrimLeft(line, " ")
	return line[:len(line)-len(text)] + output.Cell(text)
}
