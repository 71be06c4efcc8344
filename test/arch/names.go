package arch

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// codeName is how pages name code: folder, then function, type, or type and method,
// in backquotes.
var codeName = regexp.MustCompile("`((?:pkg|services|migrations|deploy|test)(?:/[a-z0-9-]+)*)\\.([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)?)`")

// fileName is how pages name files of code, in backquotes.
var fileName = regexp.MustCompile("`((?:pkg|services|migrations|deploy|test)/[\\w./-]+\\.(?:go|sql))`")

// fileAndFunctions are two cells of a table: a file, and functions or methods in it.
var fileAndFunctions = regexp.MustCompile("\\| `([\\w./-]+\\.go)` \\| ((?:`\\w+`(?:, )?)+) \\|")

// numbered begins a step of a page.
var numbered = regexp.MustCompile(`^\d+\. `)

// fileEndings follow a dot in the names of files, which are not names of code.
func fileEndings() []string { return []string{"go", "md", "sql", "yaml", "json", "sh", "toml"} }

// namesIn lists the names of code on a page, as folder and name.
func namesIn(page string) (names [][2]string) {
	for _, match := range codeName.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(fileEndings(), match[2]) {
			names = append(names, [2]string{match[1], match[2]})
		}
	}
	return names
}

// missingNames lists what a page names and the code does not declare.
func missingNames(root, page string) (missing []string, err error) {
	folders := map[string]map[string]bool{}
	for _, name := range namesIn(page) {
		folder := name[0]
		if folders[folder] == nil {
			if folders[folder], err = declaredIn(filepath.Join(root, folder)); err != nil {
				return nil, err
			}
		}
		if whole := folder + "." + name[1]; !folders[folder][name[1]] && !slices.Contains(missing, whole) {
			missing = append(missing, whole)
		}
	}
	return missing, nil
}

// missingFiles lists the files of code that a page names and that do not exist.
func missingFiles(root, page string) (missing []string, err error) {
	for _, match := range fileName.FindAllStringSubmatch(page, -1) {
		switch _, err := os.Stat(filepath.Join(root, filepath.FromSlash(match[1]))); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, match[1])
		case err != nil:
			return nil, fmt.Errorf("look for the files of a page: %w", err)
		}
	}
	return missing, nil
}

// missingFunctions lists what the tables of a page say is in a file and is not there.
func missingFunctions(root, page string) (missing []string, err error) {
	for _, match := range fileAndFunctions.FindAllStringSubmatch(page, -1) {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(match[1])), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("look for the functions of a page: %w", err)
		}
		there := map[string]bool{}
		for _, name := range declarations(parsed) {
			there[name[strings.LastIndex(name, ".")+1:]] = true
		}
		for name := range strings.SplitSeq(match[2], ", ") {
			if name = strings.Trim(name, "`"); !there[name] {
				missing = append(missing, match[1]+" "+name)
			}
		}
	}
	return missing, nil
}

// declaredIn returns the functions, types and methods that a folder declares outside
// its tests; none for a folder that does not exist.
func declaredIn(folder string) (map[string]bool, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the declarations: %w", err)
	}
	declared := map[string]bool{}
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("list the declarations: %w", err)
		}
		for _, name := range declarations(parsed) {
			declared[name] = true
		}
	}
	return declared, nil
}

// declarations lists the functions, the types and, as Type.Method, the methods of a
// file.
func declarations(parsed *ast.File) (names []string) {
	for _, declaration := range parsed.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if receiver := receiverOf(d); receiver != "" {
				names = append(names, receiver+"."+d.Name.Name)
			} else {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if declared, is := spec.(*ast.TypeSpec); is {
					names = append(names, declared.Name.Name)
				}
			}
		}
	}
	return names
}

// receiverOf returns the name of the type of which a function is a method, without
// pointer and type parameters; "" for a function.
func receiverOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	of := function.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}
