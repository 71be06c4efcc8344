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
	return []string{"pkg/policyfile/strictyaml", "pkg/policyfile/kueue", "pkg/policyfile/queuesfile", "pkg/state", "pkg/state/decisionlog", "pkg/whatif/world", "pkg/whatif/scenario", "pkg/whatif/simulation", "pkg/whatif/swf"}
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

// confined is an import that only some may reach.
type confined struct {
	what string
	// match says which import paths it is.
	match func(string) bool
	// allowed are the folders that may import it.
	allowed []string
	// linked: others may not even reach it through a package that may.
	linked bool
	why    string
}

// talksToAPIServer matches client-go but for its reader of JSONPath expressions.
func talksToAPIServer(path string) bool {
	const group = "k8s.io/client-go"
	return under(group)(path) && !under(group+"/util/jsonpath")(path) && !under(group+"/third_party/forked/golang/template")(path)
}

func confinements() []confined {
	return []confined{
		{
			what: "pgx", match: under("github.com/jackc/pgx"), linked: true,
			allowed: []string{"services/queue-manager", client, composer, "pkg/testkit/pgtest", "pkg/local/postgres", "migrations", "test"},
			why:     "only queue-manager talks to Postgres",
		},
		{
			what: "client-go", match: talksToAPIServer, linked: true,
			allowed: []string{"services/capacity-watcher", "services/dispatcher", "services/intake", composer, "pkg/kube/lease", "pkg/kube/apiserver", "deploy", "test"},
			why:     "only capacity-watcher, dispatcher and intake's Kubernetes controller talk to an API server",
		},
		{
			what: "nats.go", match: under("github.com/nats-io/nats.go"),
			allowed: []string{"pkg/bus", "pkg/message/query", "test"},
			why:     "streams, subjects and settlement are package bus's",
		},
		{
			what: "the NATS server", match: under("github.com/nats-io/nats-server"), linked: true,
			allowed: []string{"pkg/local/natsserver", composer, ledgerBench, "test"},
			why:     "a service uses NATS, it does not run one",
		},
		{
			what: "a local database", match: under(prefix + "pkg/local/postgres"), linked: true,
			allowed: []string{"pkg/testkit/pgtest", composer, ledgerBench, "test"},
			why:     "a service uses Postgres, it does not run one",
		},
		{
			what: "a local cluster", match: under(prefix + "pkg/local/devcluster"), linked: true,
			allowed: []string{"pkg/local/devcluster", "pkg/testkit/clustertest", composer, "deploy", "test"},
			why:     "a service uses Kubernetes, it does not run one",
		},
		{
			what: "what runs a service", match: runsService, linked: true,
			allowed: []string{"services/intake", "services/capacity-watcher", "services/queue-manager", "services/dispatcher", composer, "test"},
			why:     "the client stays small: no service, and none of their servers and exporters",
		},
		{
			what: "what the two command lines share", match: under(prefix + "services/internal"),
			allowed: []string{"services/internal", client, composer},
			why:     "a service is no command line",
		},
		{
			what: "package pgtest", match: under(prefix + "pkg/testkit/pgtest"), linked: true,
			allowed: []string{"pkg/testkit/pgtest", "test"},
			why:     "test databases are for tests",
		},
		{
			what: "OpenTelemetry", match: under("go.opentelemetry.io"),
			allowed: []string{"pkg/service/tracing", "pkg/service", "test"},
			why:     "how the life of a workload becomes a trace is package tracing's",
		},
		{
			what: "package testing", match: under("testing"),
			allowed: []string{"pkg/testkit/pgtest", "pkg/testkit/clustertest", "pkg/testkit/bustest", "test"},
			why:     "what runs in production links no test support",
		},
		{
			what: "module test", match: under(prefix + "test"), linked: true,
			allowed: []string{"test"},
			why:     "nothing imports test",
		},
	}
}

// runsService matches package service and the packages app of the services.
func runsService(p string) bool {
	return p == prefix+"pkg/service" || under(prefix+"services")(p) && path.Base(p) == "app"
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

// client is the command line of users, and composer is the one that runs all services
// in one process. Neither is a service.
const (
	client   = "services/muster"
	composer = "services/muster-dev"
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
