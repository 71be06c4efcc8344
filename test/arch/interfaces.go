package arch

import (
	"fmt"
	"go/ast"
)

// mostMethods is how many methods an interface declares: more hide which of them a caller
// needs. What several callers need together is composed of such interfaces.
const mostMethods = 3

// wideInterfaces are interfaces with more methods, by package and name, with the reason.
func wideInterfaces() map[string]string {
	return map[string]string{
		"pkg/bus.Settler": "it has a method for each of the four verdicts of a handler",
	}
}

// methodsDeclared returns how many methods each interface of a package declares, those of
// embedded interfaces not included. Sets of types of type parameters have none.
func methodsDeclared(files []file) map[string]int {
	declared := map[string]int{}
	for _, f := range files {
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			spec, is := node.(*ast.TypeSpec)
			if !is {
				return true
			}
			of, is := spec.Type.(*ast.InterfaceType)
			if !is {
				return true
			}
			declared[spec.Name.Name] = 0
			for _, member := range of.Methods.List {
				declared[spec.Name.Name] += len(member.Names)
			}
			return true
		})
	}
	return declared
}

// checkInterfaces returns a sentence for each interface of a package that declares more than
// mostMethods without a reason.
func checkInterfaces(folder string, files []file, wide map[string]string) (breaches []string) {
	for name, methods := range methodsDeclared(files) {
		if methods > mostMethods && wide[folder+"."+name] == "" {
			breaches = append(breaches, fmt.Sprintf("%s: interface %s declares %d methods: compose it of what each consumer calls, with %d at most",
				folder, name, methods, mostMethods))
		}
	}
	return breaches
}
