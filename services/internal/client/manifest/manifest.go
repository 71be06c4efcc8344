// Package manifest parses what a user hands to `muster submit`, just enough
// to send it: the documents of a file, and what each calls itself.
//
// It is not for judging manifests; Muster does that on its side, so that all
// interfaces have the same rules and a refusal is recorded.
package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/kube"
)

// Document is one manifest as the user wrote it. What could not be read of it is
// empty.
type Document struct {
	Raw  []byte
	JSON bool // Raw is JSON; otherwise YAML, or something that Muster will refuse

	APIVersion, Kind, Namespace, Name, GenerateName string
	// Queue is the one that its label names.
	Queue string
}

// head is the part of a manifest with what it is.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace    string         `json:"namespace"`
		Name         string         `json:"name"`
		GenerateName string         `json:"generateName"`
		Labels       map[string]any `json:"labels"`
	} `json:"metadata"`
}

// Split returns the documents of a file, without the empty ones.
func Split(content []byte) []Document {
	if json.Valid(content) {
		return []Document{read(content, true)}
	}
	var documents []Document
	var current [][]byte
	flush := func() {
		raw := bytes.Join(current, []byte("\n"))
		current = nil
		if !blank(raw) {
			documents = append(documents, read(raw, json.Valid(raw)))
		}
	}
	for line := range bytes.SplitSeq(content, []byte("\n")) {
		if separates(line) {
			flush()
			continue
		}
		current = append(current, line)
	}
	flush()
	return documents
}

// separates reports whether the line starts a new document. YAML gives three
// dashes at the start of a line no other meaning, not even in a block of text.
func separates(line []byte) bool {
	rest, dashes := bytes.CutPrefix(bytes.TrimRight(line, " \t\r"), []byte("---"))
	return dashes && (len(rest) == 0 || bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), []byte("#")) && rest[0] != '#')
}

// blank reports whether a document has nothing but comments.
func blank(raw []byte) bool {
	for line := range bytes.SplitSeq(raw, []byte("\n")) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			return false
		}
	}
	return true
}

func read(raw []byte, isJSON bool) Document {
	d := Document{Raw: raw, JSON: isJSON}
	var h head
	if err := yaml.Unmarshal(raw, &h); err != nil {
		return d // Muster reports what is wrong with it
	}
	d.APIVersion, d.Kind, d.Namespace, d.Name, d.GenerateName = h.APIVersion, h.Kind, h.Metadata.Namespace, h.Metadata.Name, h.Metadata.GenerateName
	d.Queue, _ = h.Metadata.Labels[kube.QueueNameLabel].(string)
	return d
}

// InNamespace returns the document with the namespace set. It fails when the
// document names another one. A document that cannot be read stays as it is.
func (d Document) InNamespace(namespace string) (Document, error) {
	if namespace == "" || d.Namespace == namespace || d.Kind == "" {
		return d, nil
	}
	if d.Namespace != "" {
		return d, fmt.Errorf("%s is in namespace %q, but --namespace is %q; want the same", d, d.Namespace, namespace)
	}
	var object map[string]any
	if err := yaml.Unmarshal(d.Raw, &object); err != nil {
		return d, nil
	}
	metadata, isObject := object["metadata"].(map[string]any)
	if !isObject {
		return d, nil
	}
	metadata["namespace"] = namespace
	raw, err := json.Marshal(object)
	if err != nil {
		return d, fmt.Errorf("encode %s: %w", d, err)
	}
	d.Raw, d.JSON, d.Namespace = raw, true, namespace
	return d, nil
}

// String names the document as kubectl does: "raycluster/glue".
func (d Document) String() string {
	name := d.Name
	if name == "" && d.GenerateName != "" {
		name = d.GenerateName + "*"
	}
	if d.Kind == "" || name == "" {
		return "manifest"
	}
	return strings.ToLower(d.Kind) + "/" + name
}
