package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// pure lists the packages that decide: a function of their input on any
// machine. Each may import those before it.
func pure() []string {
	return []string{"pkg/spec/resource", "pkg/decide/index", "pkg/spec/fault", "pkg/spec/workload", "pkg/spec/capacity", "pkg/decide/quota", "pkg/decide/placement", "pkg/decide/placement/certificate", "pkg/decide/admission"}
}

// timeless lists packages that may import others, but whose results are a
// function of their input all the same: they read no clock and have no effects.
func timeless() []string {
	return []string{"pkg/kube/lease/rules", "pkg/policyfile/strictyaml", "pkg/policyfile/kueue", "pkg/policyfile/queuesfile", "pkg/state", "pkg/state/decisionlog", "pkg/whatif/world", "pkg/whatif/scenario", "pkg/whatif/simulation", "pkg/whatif/swf"}
}

// impure is what of the standard library has effects, or a result that differs
// from run to run.
func impure() []string {
	return []string{"context", "os", "net", "log", "sync", "math/rand", "crypto/rand", "syscall", "testing"}
}

// clientless lists the folders whose packages are values and their rules: they link no
// client of a server, so that a command line or a test that uses them stays small.
func clientless() []string {
	return []string{"pkg/spec", "pkg/decide", "pkg/state", "pkg/message/event", "pkg/policyfile", "pkg/manifest", "pkg/whatif"}
}

// clients are the libraries that talk to servers.
func clients() map[string]func(string) bool {
	return map[string]func(string) bool{
		"nats.go": under("github.com/nats-io/nats.go"), "pgx": under("github.com/jackc/pgx"), "client-go": under("k8s.io/client-go"),
	}
}

// under matches an import path and what is below it.
func under(root string) func(string) bool {
	return func(p string) bool { return p == root || strings.HasPrefix(p, root+"/") }
}

// in reports whether the package is in one of the folders.
func in(pkg *Package, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return under(folder)(pkg.Short()) })
}

// CheckImports returns a sentence for each breach of the import rules.
func CheckImports(g Graph) []string {
	var breaches []string
	for _, pkg := range g.Ours() {
		breaches = append(breaches, checkPure(g, pkg)...)
		breaches = append(breaches, checkClientless(g, pkg)...)
		breaches = append(breaches, checkConfined(g, pkg)...)
		breaches = append(breaches, checkServices(g, pkg)...)
	}
	return breaches
}

func checkPure(g Graph, pkg *Package) []string {
	level := slices.Index(pure(), pkg.Short())
	if level < 0 && !slices.Contains(timeless(), pkg.Short()) {
		return nil
	}
	var breaches []string
	for _, imported := range pkg.Imports {
		switch dep, known := g[imported]; {
		case slices.ContainsFunc(impure(), func(root string) bool { return under(root)(imported) }):
			breaches = append(breaches, fmt.Sprintf("%s imports %s: it is pure, without effects, clock or chance", pkg.Short(), imported))
		case known && dep.Standard, level < 0:
		case known && dep.Ours() && slices.Contains(pure()[:level], dep.Short()):
		default:
			breaches = append(breaches, fmt.Sprintf("%s imports %s: it may import the standard library and %v", pkg.Short(), imported, pure()[:level]))
		}
	}
	return breaches
}

func checkClientless(g Graph, pkg *Package) []string {
	if !in(pkg, clientless()) {
		return nil
	}
	var breaches []string
	for name, match := range clients() {
		if chain := g.Chain(pkg.ImportPath, match); chain != nil {
			breaches = append(breaches, fmt.Sprintf("%s links %s: values and rules talk to no server: %s", pkg.Short(), name, strings.Join(chain, " -> ")))
		}
	}
	return breaches
}

// client is the command line of users, and composer is the one that runs all services
// in one process. Neither is a service. console is one, and a client of the HTTP API.
const (
	client   = "services/muster"
	composer = "services/muster-dev"
	console  = "services/console"
)

// mayImport reports what the command lines may import of others: composer runs the
// services and tells its story with the client's examples; client replays decisions
// with the code that made them.
func mayImport(own, imported string) bool {
	switch own {
	case composer:
		return path.Base(imported) == "app" || imported == client+"/examples"
	case client:
		return imported == "services/queue-manager/replay"
	}
	return false
}

// ledgerBench is a benchmark beside a service, because it measures what is
// internal there; no service links it.
const ledgerBench = "services/queue-manager/ledgerbench"

func checkServices(g Graph, pkg *Package) []string {
	own := serviceOf(pkg)
	var breaches []string
	for _, imported := range slices.Concat(pkg.Imports, pkg.TestImports, pkg.XTestImports) {
		dep := &Package{ImportPath: imported}
		other := serviceOf(dep)
		switch {
		case other == "" || other == own || in(pkg, []string{"test"}):
		case mayImport(own, dep.Short()):
		case own == "":
			breaches = append(breaches, fmt.Sprintf("%s imports %s: services stand on packages, not the reverse", pkg.Short(), dep.Short()))
		default:
			breaches = append(breaches, fmt.Sprintf("%s imports %s: services know each other by messages only", pkg.Short(), dep.Short()))
		}
	}
	return breaches
}

// serviceOf is the folder of the service or command line that the package is of, or
// empty; what the command lines share is of none.
func serviceOf(pkg *Package) string {
	parts := strings.Split(pkg.Short(), "/")
	if !pkg.Ours() || parts[0] != "services" || len(parts) < 2 || parts[1] == "internal" {
		return ""
	}
	return path.Join(parts[0], parts[1])
}
