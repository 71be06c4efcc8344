package arch

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
)

// quantityParser is the package that bounds quantities before it parses them.
const quantityParser = "pkg/kube"

// quantityTypes are the packages whose types have quantities.
func quantityTypes() []string {
	return []string{
		"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/api/resource",
		"github.com/ray-project/kuberay/ray-operator/apis/ray/v1", "github.com/ray-project/kuberay/ray-operator/apis/ray/v1alpha1",
	}
}

// decoders are the packages that fill a type from text, with the functions that do.
func decoders() map[string][]string {
	return map[string][]string{
		"encoding/json":                     {"Unmarshal", "NewDecoder"},
		"sigs.k8s.io/json":                  {"Unmarshal", "UnmarshalStrict", "UnmarshalCaseSensitivePreserveInts"},
		"sigs.k8s.io/yaml":                  {"Unmarshal", "UnmarshalStrict"},
		"go.yaml.in/yaml/v3":                {"Unmarshal", "NewDecoder"},
		"k8s.io/apimachinery/pkg/util/yaml": {"Unmarshal", "NewYAMLOrJSONDecoder"},
		"k8s.io/apimachinery/pkg/runtime":   {"DefaultUnstructuredConverter"},
	}
}

// treeReaders are files that import types with quantities and decode into others:
// trees, and structs of metadata. Each has the listed number of calls.
func treeReaders() map[string]int {
	return map[string]int{
		"pkg/manifest/podpolicy/check.go": 1, "pkg/manifest/ray/stampjob.go": 1, "pkg/manifest/ray/operator.go": 1,
	}
}

// checkQuantities returns a sentence for each place that parses a quantity, or may
// decode one, elsewhere than in the package that bounds them.
func checkQuantities(pkg *Package, files []file) []string {
	if !in(pkg, []string{"pkg", "services"}) || pkg.Short() == quantityParser {
		return nil
	}
	var breaches []string
	for _, f := range files {
		parses := calls(f, "k8s.io/apimachinery/pkg/api/resource", []string{"ParseQuantity", "MustParse"})
		for _, line := range parses {
			breaches = append(breaches, fmt.Sprintf("%s/%s:%d parses a quantity: %s does, which bounds it", pkg.Short(), f.name, line, quantityParser))
		}
		if !slices.ContainsFunc(quantityTypes(), func(p string) bool { return importedAs(f.syntax, p) != "" }) {
			continue
		}
		var decodes []int
		for from, functions := range decoders() {
			decodes = append(decodes, calls(f, from, functions)...)
		}
		slices.Sort(decodes)
		for _, line := range decodes[min(len(decodes), treeReaders()[path.Join(pkg.Short(), f.name)]):] {
			breaches = append(breaches, fmt.Sprintf("%s/%s:%d decodes beside types with quantities: Decode of %s checks them first", pkg.Short(), f.name, line, quantityParser))
		}
	}
	return breaches
}

// calls lists the lines on which a file names functions of an import.
func calls(f file, from string, functions []string) (lines []int) {
	name := importedAs(f.syntax, from)
	if name == "" {
		return nil
	}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		selector, is := node.(*ast.SelectorExpr)
		if !is {
			return true
		}
		if of, is := selector.X.(*ast.Ident); is && of.Name == name && slices.Contains(functions, selector.Sel.Name) {
			lines = append(lines, f.set.Position(selector.Pos()).Line)
		}
		return true
	})
	return lines
}
