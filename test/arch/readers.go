package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// reading is how a package that decodes text is tried with arbitrary bytes: by its
// own fuzz targets, by those of packages that read through it, or not at all, because
// Muster itself has written what it reads. calls is how often it decodes: with one
// more, the targets may have to try more.
type reading struct {
	calls   int
	targets []string // package and name
	why     string   // there is none
}

// readings are all packages of the services that decode text.
func readings() map[string]reading {
	by := func(calls int, targets ...string) reading { return reading{calls: calls, targets: targets} }
	ours := func(calls int, why string) reading { return reading{calls: calls, why: why} }
	const (
		submission = "services/intake/internal/submission.FuzzRead"
		wrapper    = "pkg/manifest/appwrapper.FuzzRead"
		kueue      = "pkg/policyfile/kueue.FuzzRead"
		scenario   = "pkg/whatif/scenario.FuzzParse"
	)
	return map[string]reading{
		// Messages on NATS.
		"pkg/bus":                             by(2, "pkg/bus.FuzzGuard"),
		"pkg/message/event":                   by(2, "pkg/message/event.FuzzDecode", "services/queue-manager/internal/engine.FuzzApply"),
		"pkg/message/query":                   by(3, "pkg/message/query.FuzzRequest"),
		"services/intake/internal/submission": by(4, submission),
		// Manifests, at every interface.
		"pkg/manifest/appwrapper":   by(1, wrapper),
		"pkg/manifest/bundle":       by(3, wrapper),
		"pkg/kube":                  by(2, wrapper, "pkg/manifest/ray.FuzzRead"),
		"pkg/manifest/masked":       by(1, "pkg/manifest/masked.FuzzJSON"),
		"pkg/manifest/objectpolicy": by(1, "pkg/manifest/objectpolicy.FuzzCheck"),
		"pkg/manifest/podpolicy":    by(2, "pkg/manifest/podpolicy.FuzzCheck"),
		"pkg/manifest/podsets":      by(1, "pkg/manifest/podsets.FuzzWrapped"),
		"pkg/manifest/ray":          by(7, "pkg/manifest/ray.FuzzRead", "pkg/manifest/ray.FuzzOperator"),
		"pkg/spec/workload":         by(3, submission, scenario),
		// Objects of a cluster.
		"services/dispatcher/internal/kubernetes":  by(4, "services/dispatcher/internal/kubernetes.FuzzSeen"),
		"services/dispatcher/internal/reconcile":   by(3, "services/dispatcher/internal/reconcile.FuzzMoved"),
		"pkg/kube/relist":                          by(1, "pkg/kube/relist.FuzzAnswer"),
		"services/intake/internal/kubecontroller":  by(1, "services/intake/internal/kubecontroller.FuzzReconcile", "services/intake/internal/kubecontroller.FuzzStatus"),
		"services/capacity-watcher/internal/watch": by(0, "services/capacity-watcher/internal/watch.FuzzSeen"),
		// HTTP.
		"services/intake/internal/httpserver":    by(2, "services/intake/internal/httpserver.FuzzTokens", "services/intake/internal/httpserver.FuzzRequest"),
		"services/internal/client/overhttp":      by(5, "services/internal/client/overhttp.FuzzAnswer"),
		"services/intake/internal/policywebhook": by(4, "services/intake/internal/policywebhook.FuzzReview"),
		// Files, and what is applied.
		"pkg/policyfile/kueue":              by(1, kueue),
		"pkg/policyfile/queuesfile":         by(0, "pkg/policyfile/queuesfile.FuzzRead"),
		"pkg/decide/placement/certificate":  by(2, "pkg/decide/placement/certificate.FuzzRead"),
		"pkg/decide/quota":                  by(4, "pkg/decide/quota.FuzzConfig", kueue),
		"pkg/whatif/scenario":               by(1, scenario),
		"pkg/whatif/submissions":            by(1, "pkg/whatif/submissions.FuzzRead", "pkg/whatif/submissions.FuzzFleet"),
		"pkg/policyfile/strictyaml":         by(4, "pkg/policyfile/strictyaml.FuzzDecode"),
		"pkg/state/decisionlog":             by(1, "pkg/state/decisionlog.FuzzInputs"),
		"services/internal/client/manifest": by(2, "services/internal/client/manifest.FuzzSplit"),
		"services/internal/client/trial":    by(1, "services/internal/client/trial.FuzzRead"),
		// What Muster itself has written.
		"pkg/local/devcluster":                   ours(2, "the answers of the dev cluster"),
		"pkg/local/natsserver":                   ours(2, "the ports and subscriptions of a server that the test started"),
		"pkg/testkit/alerttest":                  ours(1, "the alerts of the chart"),
		"services/intake/internal/trial":         ours(1, "intake gives it to the process that it starts"),
		"services/muster/internal/cli":           ours(2, "only written out again, and Cell makes it safe"),
		"services/muster-dev/internal/demo":      ours(1, "the demo's own manifests"),
		"services/internal/client/localaddress":  ours(1, "a file of muster-dev, in the folder of the user"),
		"services/internal/client/output":        ours(4, "the answer that it has just written as JSON"),
		"services/queue-manager/internal/engine": ours(1, "a note that it has written"),
		"services/queue-manager/internal/store":  ours(14, "columns that it has written"),
		// Of recorded decisions; pkg/state/decisionlog reads the inputs.
		"services/queue-manager/internal/decisions": ours(1, "outcomes that queue-manager has written"),
		"services/queue-manager/replay":             ours(2, "outcomes that queue-manager has written"),
	}
}

// checkReaders returns a sentence for each package that decodes text and of which it
// is not known which fuzz target tries it, and for each row that says what is not so.
func checkReaders(g Graph, files map[string][]file, known map[string]reading) []string {
	var breaches []string
	for _, short := range slices.Sorted(maps.Keys(files)) {
		if !slices.ContainsFunc([]string{"pkg/", "services/"}, func(folder string) bool { return strings.HasPrefix(short, folder) }) {
			continue
		}
		calls := decodes(files[short])
		row, listed := known[short]
		switch {
		case calls > 0 && !listed:
			breaches = append(breaches, fmt.Sprintf("%s decodes text, and no fuzz target is listed that tries it (readers.go)", short))
		case calls != row.calls:
			breaches = append(breaches, fmt.Sprintf("%s decodes text in %d places, and readers.go knows of %d: does a fuzz target try all of them?", short, calls, row.calls))
		}
	}
	for _, short := range slices.Sorted(maps.Keys(known)) {
		row := known[short]
		if _, there := files[short]; !there {
			breaches = append(breaches, fmt.Sprintf("%s does not exist, and readers.go has a row for it", short))
		}
		if len(row.targets) == 0 && row.why == "" {
			breaches = append(breaches, fmt.Sprintf("%s has neither a fuzz target nor a reason for that", short))
		}
		for _, target := range row.targets {
			at, name := target[:strings.LastIndex(target, ".")], path.Ext(target)[1:]
			if !defines(g[prefix+at], name) {
				breaches = append(breaches, fmt.Sprintf("%s is to be tried by %s, which does not exist", short, target))
			} else if at != short && g.Chain(prefix+at, under(prefix+short)) == nil {
				breaches = append(breaches, fmt.Sprintf("%s is to be tried by %s, which does not link it", short, target))
			}
		}
	}
	return breaches
}

// decodes counts the places where files name a function that decodes text.
func decodes(files []file) (places int) {
	for _, f := range files {
		for from, functions := range decoders() {
			places += len(calls(f, from, functions))
		}
	}
	return places
}

// defines reports whether the tests of a package have a function of that name.
func defines(pkg *Package, name string) bool {
	if pkg == nil {
		return false
	}
	files, err := parseNamed(pkg, slices.Concat(pkg.TestGoFiles, pkg.XTestGoFiles))
	return err == nil && slices.ContainsFunc(files, func(f file) bool {
		return slices.ContainsFunc(f.syntax.Decls, func(d ast.Decl) bool {
			function, is := d.(*ast.FuncDecl)
			return is && function.Recv == nil && function.Name.Name == name
		})
	})
}
