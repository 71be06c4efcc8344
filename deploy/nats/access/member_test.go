package access

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
)

// use is what a call needs of the server.
type use struct{ publish, subscribe []string }

func publishes(subjects ...string) use { return use{publish: subjects} }

// The keys of a cluster are in a cluster that may be another's. Its services have the rights that
// their code uses, and no others: each call that needs a right is listed here with it.
func TestTheServicesOfAClusterHaveTheRightsThatTheyUse(t *testing.T) {
	t.Parallel()
	const here, id = "here", "id"
	asked, connection := use{subscribe: []string{event.AskSubject(here)}}, use{}
	for service, c := range map[string]struct {
		user User
		uses map[string]use
	}{
		"capacity-watcher": {capacityWatcher(here), map[string]use{
			"bus.Asked": asked, "Bus.Close": connection, "Bus.Reconnected": connection,
			"Bus.AwaitStreams": publishes(makesStreams()...), "Bus.EnsureStreams": publishes(makesStreams()...),
			"event.NodeSubject":      publishes(event.NodeSubject(here, "n")),
			"event.NamespaceSubject": publishes(event.NamespaceSubject(here, "n")),
			"event.GangSubject":      publishes(event.GangSubject(here, id)),
			"event.SyncedSubject":    publishes(event.SyncedSubject(here)),
			"bus.NewValues":          publishes(lastOf(bus.CapacityStream, event.NodeSubject(here, "n"))),
			"Bus.LastValues":         connection, // of the filter
			"event.CapacityFilter":   publishes(follows(bus.CapacityStream, event.CapacityFilter(here))...),
		}},
		"dispatcher": {dispatcher(here), map[string]use{
			"bus.Asked": asked, "Bus.Close": connection, "Bus.Reconnected": connection, "Bus.Conn": connection,
			"Bus.AwaitStreams": publishes(makesStreams()...), "Bus.EnsureStreams": publishes(makesStreams()...),
			"event.StatusSubject":          publishes(event.StatusSubject(here, id)),
			"event.PermissionAskedSubject": publishes(event.PermissionAskedSubject(here)),
			"bus.NewValues":                publishes(lastOf(bus.StatusStream, event.StatusSubject(here, id))),
			"Bus.LastValues":               connection, // of the filter
			"event.ClusterStatusFilter":    publishes(follows(bus.StatusStream, event.ClusterStatusFilter(here))...),
			"Bus.Follow":                   connection, // of the filter
			"event.DispatchFilter":         publishes(follows(bus.DispatchStream, event.DispatchFilter(here))...),
			"query.Strays":                 publishes(query.StraysSubject),
			"query.Truth":                  publishes(query.TruthSubject(here)),
			"query.Carry": {
				publish:   []string{query.CarrySubject(here), query.CarriedSubject(here, "asker", "1")},
				subscribe: []string{query.CarriedWantedSubject(here)},
			},
			"query.Workloads": connection, // an accounts.conf of an earlier version has the right to it
		}},
	} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			found := usesOf(t, filepath.Join("..", "..", "..", "services", service))
			var publish, subscribe []string
			for _, name := range slices.Sorted(maps.Keys(found)) {
				if _, listed := c.uses[name]; !listed {
					t.Errorf("the service calls %s: list the right that it needs here", name)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(c.uses)) {
				if !found[name] {
					t.Errorf("the service does not call %s any more: take it off the list, with its right", name)
				}
				publish, subscribe = append(publish, c.uses[name].publish...), append(subscribe, c.uses[name].subscribe...)
			}
			compare(t, "publish", c.user.Publish, publish)
			compare(t, "subscribe", c.user.Subscribe, subscribe)
		})
	}
}

// compare fails for what is used and not allowed, and for what is allowed and not used.
func compare(t *testing.T, what string, rights, used []string) {
	t.Helper()
	for _, subject := range used {
		if !slices.ContainsFunc(rights, func(right string) bool { return covers(right, subject) }) {
			t.Errorf("%s: %s is used, and not allowed", what, subject)
		}
	}
	for _, right := range rights {
		if !slices.ContainsFunc(used, func(subject string) bool { return covers(right, subject) }) {
			t.Errorf("%s: %s is allowed, and not used", what, right)
		}
	}
}

// covers reports whether a subject, which may have wildcards of its own, is within a right.
func covers(right, subject string) bool {
	rights, tokens := strings.Split(right, "."), strings.Split(subject, ".")
	for i, r := range rights {
		if r == ">" {
			return len(tokens) > i
		}
		if i >= len(tokens) || r != "*" && r != tokens[i] {
			return false
		}
	}
	return len(rights) == len(tokens)
}

// usesOf lists the calls in the source of a service that may need a right: subjects and filters of
// package event, functions of package bus that take a bus, methods of a bus, and questions to
// queue-manager.
func usesOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	uses := map[string]bool{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			usesIn(file, uses)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return uses
}

func usesIn(file *ast.File, uses map[string]bool) {
	methods, questions := methodsOf[*bus.Bus](), methodsOf[*query.Client]()
	clients := clientsIn(file)
	ast.Inspect(file, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		selected, is := call.Fun.(*ast.SelectorExpr)
		if !is {
			return true
		}
		name, of := selected.Sel.Name, lastName(selected.X)
		switch {
		case of == "event" && (strings.HasSuffix(name, "Subject") || strings.HasSuffix(name, "Filter")):
			uses["event."+name] = true
		case of == "bus" && (name == "Asked" || name == "NewValues"):
			uses["bus."+name] = true
		case (of == "b" || strings.EqualFold(of, "bus")) && methods[name]:
			uses["Bus."+name] = true
		case clients[of] && questions[name]:
			uses["query."+name] = true
		}
		return true
	})
}

// clientsIn returns the names of the variables that are made by query.NewClient, patient or not.
func clientsIn(file *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		assigned, is := n.(*ast.AssignStmt)
		if !is || len(assigned.Rhs) != 1 {
			return true
		}
		call, is := assigned.Rhs[0].(*ast.CallExpr)
		if !is {
			return true
		}
		made, is := call.Fun.(*ast.SelectorExpr)
		if !is {
			return true
		}
		if inner, chained := made.X.(*ast.CallExpr); chained && made.Sel.Name == "Patient" {
			made, is = inner.Fun.(*ast.SelectorExpr)
		}
		if is && made.Sel.Name == "NewClient" && lastName(made.X) == "query" {
			names[lastName(assigned.Lhs[0])] = true
		}
		return true
	})
	return names
}

// lastName is the name of a variable, a package or a field.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func methodsOf[T any]() map[string]bool {
	methods := map[string]bool{}
	of := reflect.TypeFor[T]()
	for i := range of.NumMethod() {
		methods[of.Method(i).Name] = true
	}
	return methods
}
