package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// confined is an import that only some may reach.
type confined struct {
	what string
	// match reports whether an import path is one of it.
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

// confinements are all rules on imports that only some may reach.
func confinements() []confined {
	return slices.Concat(confinedClients(), confinedServers(), confinedPackages())
}

// confinedClients are the libraries through which a program reaches a database, an API
// server, NATS or a collector of traces.
func confinedClients() []confined {
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
			what: "OpenTelemetry", match: under("go.opentelemetry.io"),
			allowed: []string{"pkg/service/tracing", "pkg/service", "test"},
			why:     "how the life of a workload becomes a trace is package tracing's",
		},
	}
}

// confinedServers are what a service uses and does not run.
func confinedServers() []confined {
	return []confined{
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
	}
}

// confinedPackages are Muster's own packages, and the test support.
func confinedPackages() []confined {
	return []confined{
		{
			what: "what runs a service", match: runsService, linked: true,
			allowed: []string{"services/intake", "services/capacity-watcher", "services/queue-manager", "services/dispatcher", console, composer, "test"},
			why:     "the client stays small: no service, and none of their servers and exporters",
		},
		{
			what: "what the clients share", match: under(prefix + "services/internal"),
			allowed: []string{"services/internal", client, composer, console},
			why:     "a service is no client of Muster",
		},
		{
			what: "package pgtest", match: under(prefix + "pkg/testkit/pgtest"), linked: true,
			allowed: []string{"pkg/testkit/pgtest", "test"},
			why:     "test databases are for tests",
		},
		{
			what: "package testing", match: under("testing"),
			allowed: []string{"pkg/testkit/pgtest", "pkg/testkit/clustertest", "pkg/testkit/bustest", "pkg/testkit/clienttest", "pkg/testkit/oidctest", "pkg/testkit/smalldisk", "services/internal/client/clitest", "test"},
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
