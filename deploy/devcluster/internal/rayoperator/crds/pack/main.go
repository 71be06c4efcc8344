// Command pack packs the custom resource definitions of the KubeRay module that
// this module requires into crds.json.gz. Run it by "go generate".
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	module = "github.com/ray-project/kuberay/ray-operator"
	target = "crds.json.gz"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run() error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("finding the module %s: %w", module, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "config/crd/bases/*.yaml"))
	if err != nil {
		return err
	}
	definitions := make(map[string]json.RawMessage)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		data, err := yaml.YAMLToJSON(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		var head struct {
			Metadata struct{ Name string }
		}
		if err := json.Unmarshal(data, &head); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		definitions[head.Metadata.Name] = data
	}
	var zipped bytes.Buffer
	writer, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(writer).Encode(definitions); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(target, zipped.Bytes(), 0o644)
}
