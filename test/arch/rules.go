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
	return []string{"pkg/resource", "pkg/roster", "pkg/fault", "pkg/workload", "pkg/capacity", "pkg/quota", "pkg/placement", "pkg/placement/certificate", "pkg/admission"}
}

// timeless lists packages that may import others, but whose results are a
// function of their input all the same: they read no clock and have no effects.
func timeless() []string {
	return []string{"pkg/strictyaml", "pkg/kueue", "pkg/queuesfile", "pkg/book", "pkg/journal", "pkg/rehearsal", "pkg/scenario", "pkg/simulation", "pkg/swf"}
}

// impure is what of the standard library has effects, or a result that differs
// from run to run.
func impure() []string {
	return []string{"context", "os", "net", "log", "sync", "math/rand", "crypto/rand", "syscall", "testing"}
}

// confined is an import that only some may reach.
type confined struct {
	what string
	// match says which import paths it is.
	match func(string) bool
	// allowed are the folders that may import it.
	allowed []string
	// linked: others may not even reach it through somebody who may.
	linked bool
	why    string
}

func confinements() []confined {
	return []confined{
		{
			what: "pgx", match: under("github.com/jackc/pgx"), linked: true,
			allowed: []string{"services/queue-manager", "services/muster", "pkg/pgtest", "pkg/localpg", "migrations", "test"},
			why:     "only queue-manager talks to Postgres",
		},
		{
			what: "client-go", match: under("k8s.io/client-go"), linked: true,
			allowed: []string{"services/capacity-watcher", "services/dispatcher", "services/intake", "services/muster", "pkg/lease", "deploy", "test"},
			why:     "only capacity-watcher, dispatcher and intake's door talk to an API server",
		},
		{
			what: "nats.go", match: under("github.com/nats-io/nats.go"),
			allowed: []string{"pkg/bus", "pkg/query", "test"},
			why:     "streams, subjects and settlement are package bus's",
		},
		{
			what: "the NATS server", match: under("github.com/nats-io/nats-server"), linked: true,
			allowed: []string{"pkg/localnats", "services/muster", ledgerBench, "test"},
			why:     "a service uses NATS, it does not run one",
		},
		{
			what: "a local database", match: under(prefix + "pkg/localpg"), linked: true,
			allowed: []string{"pkg/pgtest", "services/muster", ledgerBench, "test"},
			why:     "a service uses Postgres, it does not run one",
		},
		{
			what: "a local cluster", match: under(prefix + "pkg/localcluster"), linked: true,
			allowed: []string{"pkg/localcluster", "pkg/clustertest", "services/muster", "deploy", "test"},
			why:     "a service uses Kubernetes, it does not run one",
		},
		{
			what: "package pgtest", match: under(prefix + "pkg/pgtest"), linked: true,
			allowed: []string{"pkg/pgtest", "test"},
			why:     "test databases are for tests",
		},
		{
			what: "OpenTelemetry", match: under("go.opentelemetry.io"),
			allowed: []string{"pkg/tracing", "pkg/service", "test"},
			why:     "how the life of a workload becomes a trace is package tracing's",
		},
		{
			what: "package testing", match: under("testing"),
			allowed: []string{"pkg/pgtest", "pkg/clustertest", "pkg/bustest", "test"},
			why:     "what runs in production links no test support",
		},
		{
			what: "module test", match: under(prefix + "test"), linked: true,
			allowed: []string{"test"},
			why:     "nothing imports test",
		},
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

func checkConfined(g Graph, pkg *Package) []string {
	var breaches []string
	for _, c := range confinements() {
		if in(pkg, c.allowed) {
			continue
		}
		if slices.ContainsFunc(pkg.Imports, c.match) {
			breaches = append(breaches, fmt.Sprintf("%s imports %s: %s", pkg.Short(), c.what, c.why))
			continue
		}
		// A program, or the package a program is composed of, must not link it.
		if c.linked && (pkg.Name == "main" || path.Base(pkg.Short()) == "app") {
			if chain := g.Chain(pkg.ImportPath, c.match); chain != nil {
				breaches = append(breaches, fmt.Sprintf("%s links %s: %s: %s", pkg.Short(), c.what, c.why, strings.Join(chain, " -> ")))
			}
		}
	}
	return breaches
}

// composer is the one service that may import others: their packages app, to
// run them in one process.
const composer = "services/muster"

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
		case own == composer && path.Base(imported) == "app":
		case own == "":
			breaches = append(breaches, fmt.Sprintf("%s imports %s: services stand on packages, not the reverse", pkg.Short(), dep.Short()))
		default:
			breaches = append(breaches, fmt.Sprintf("%s imports %s: services know each other by messages only", pkg.Short(), dep.Short()))
		}
	}
	return breaches
}

// serviceOf is the folder of the service that the package is of, or empty.
func serviceOf(pkg *Package) string {
	parts := strings.Split(pkg.Short(), "/")
	if !pkg.Ours() || parts[0] != "services" || len(parts) < 2 {
		return ""
	}
	return path.Join(parts[0], parts[1])
}
