// Command cyclonedx fails unless each file is what the JSON schema of its version of
// CycloneDX allows.
//
//	cyclonedx SCHEMAS FILE...
//
// SCHEMAS is the folder of the schemas: they come with the module of CycloneDX' own
// library, so none is downloaded.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: cyclonedx SCHEMAS FILE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(schemas string, files []string) error {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(folder(schemas))
	var wrong []error
	for _, file := range files {
		if err := check(compiler, file); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", file, err))
		}
	}
	return errors.Join(wrong...)
}

// check holds a file against the schema that it names.
func check(compiler *jsonschema.Compiler, file string) error {
	content, err := read(file)
	if err != nil {
		return err
	}
	list, _ := content.(map[string]any)
	version, _ := list["specVersion"].(string)
	if list["bomFormat"] != "CycloneDX" || version == "" {
		return errors.New("it does not say which version of CycloneDX it is")
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-" + version + ".schema.json")
	if err != nil {
		return err
	}
	return schema.Validate(content)
}

// folder has schemas under the last part of their address.
type folder string

// Load implements jsonschema.URLLoader.
func (f folder) Load(address string) (any, error) {
	file := filepath.Join(string(f), path.Base(address))
	content, err := read(file)
	if errors.Is(err, fs.ErrNotExist) { // the library calls one of them so
		content, err = read(strings.TrimSuffix(file, ".json") + "x.json")
	}
	return content, err
}

func read(file string) (any, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	return jsonschema.UnmarshalJSON(opened)
}
