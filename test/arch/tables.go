package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// stepName is the variable of a loop over steps. They follow each other, so none of them
// can be run alone.
const stepName = "step"

// checkTables returns a sentence for each loop of a test over a table of cases that
// asserts something and runs no subtests. A table is a list or map whose elements are
// structs without a name. Two kinds of loops are free: over steps, and those that skip
// the whole test.
func checkTables(folder string, files []file) (breaches []string) {
	for _, f := range files {
		for _, declared := range f.syntax.Decls {
			test, is := declared.(*ast.FuncDecl)
			if !is || test.Body == nil || !strings.HasPrefix(test.Name.Name, "Test") {
				continue
			}
			tables := tablesOf(test)
			ast.Inspect(test.Body, func(node ast.Node) bool {
				loop, is := node.(*ast.RangeStmt)
				if !is || nameOf(loop.Value) == stepName || !isTable(loop.X) && !tables[nameOf(loop.X)] {
					return true
				}
				called := callsOfTest(loop.Body)
				if slices.ContainsFunc([]string{"Error", "Errorf", "Fatal", "Fatalf"}, called) && !called("Run") && !called("Skip") {
					breaches = append(breaches, fmt.Sprintf("%s/%s:%d: %s has a table without subtests: call t.Run, or name the variable %s where each case needs those before it",
						folder, f.name, f.set.Position(loop.Pos()).Line, test.Name.Name, stepName))
				}
				return true
			})
		}
	}
	return breaches
}

// tablesOf returns the variables of a function that are tables from their declaration on.
func tablesOf(function *ast.FuncDecl) map[string]bool {
	tables := map[string]bool{}
	ast.Inspect(function.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			for i, value := range node.Rhs {
				if isTable(value) {
					tables[nameOf(node.Lhs[i])] = true
				}
			}
		case *ast.ValueSpec:
			for i, value := range node.Values {
				if isTable(value) {
					tables[node.Names[i].Name] = true
				}
			}
		}
		return true
	})
	return tables
}

// isTable reports whether an expression is a list or map of structs without a name.
func isTable(expression ast.Expr) bool {
	literal, is := expression.(*ast.CompositeLit)
	if !is {
		return false
	}
	var element ast.Expr
	switch of := literal.Type.(type) {
	case *ast.ArrayType:
		element = of.Elt
	case *ast.MapType:
		element = of.Value
	}
	_, is = element.(*ast.StructType)
	return is
}

// nameOf is the name of a variable, or empty.
func nameOf(expression ast.Expr) string {
	if name, is := expression.(*ast.Ident); is {
		return name.Name
	}
	return ""
}

// callsOfTest returns whether a body calls a method of t.
func callsOfTest(body ast.Node) func(method string) bool {
	called := map[string]bool{}
	ast.Inspect(body, func(node ast.Node) bool {
		if selector, is := node.(*ast.SelectorExpr); is && nameOf(selector.X) == "t" {
			called[selector.Sel.Name] = true
		}
		return true
	})
	return func(method string) bool { return called[method] }
}
