package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/muster/internal/cli"
)

// result is what one command line did.
type result struct {
	code        int
	out, errOut string
}

func run(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := cli.Run(t.Context(), args, strings.NewReader(in), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// fileOf writes a file of the test's own and returns its path.
func fileOf(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const job = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\n"

func TestWrongCommandLines(t *testing.T) {
	t.Setenv("MUSTER_NATS_URL", "nats://127.0.0.1:1") // no server is asked
	empty := fileOf(t, "empty.yaml", "# nothing\n")
	for _, test := range []struct {
		args string
		want string
	}{
		{"submti", "did you mean submit"},
		{"get", "want workloads, queues"},
		{"get pods", `no command "pods"`},
		{"hold queue", "one name"},
		{"hold", "want queue NAME, clusterqueue NAME or workload NAME"},
		{"hold workload", "one name or id"},
		{"resume workload a b", "one name or id"},
		{"requeue", "one name or id"},
		{"checkpoint", "one name or id"},
		{"checkpoint a --at soon", `--at "soon": want a time such as`},
		{"checkpoint a --at 2999-01-02T15:04:05Z", "not in the future"},
		{"priority a", "one name or id, and a value"},
		{"priority a high", `priority "high": want a whole number from -2147483648`},
		{"priority a 2147483648", "to 2147483647"},
		{"resume nodes", `no command "nodes"`},
		{"hold default", "want `muster hold queue default`, `muster hold clusterqueue default` or `muster hold workload default`"},
		{"cluster", "want list, or describe, join, cordon, drain, uncordon or leave with a NAME"},
		{"cluster leave a --force", "--why is missing"},
		{"cluster leave a --force --why burnt --keys .", "--force and --keys: want one of them"},
		{"cluster leave a --keys /nowhere", "there is no accounts.conf"},
		{"cluster join a --keys /nowhere", "there is no accounts.conf"},
		{"cluster join a --cost-per-hour cpu=much", "want a price from 0 to 1000000"},
		{"cluster join A.b", "want lower-case letters, digits and dashes"},
		{"describe glue", "want `muster describe workload glue`"},
		{"get raycluster", "`muster get workloads`"},
		{"get rayjobs glue", "`muster get workloads glue`"},
		{"list", "`muster get workloads`"},
		{"logs a", "`muster describe workload a` prints"},
		{"forward a", "`muster describe workload a` prints the kubectl commands for its dashboard"},
		{"delete raycluster glue", "`muster cancel glue`"},
		{"apply -f -", "-: rayjob/a is a workload: `muster submit -f -`"},
		{"cancel a --timeout 3s", "add --wait"},
		{"get nodes -o table", "want text, wide"},
		{"get workloads a b", "at most one name"},
		{"whatif", "no change given; want one or more of --add-nodes, --add-shape, --drain, --drain-cluster, --drain-label, --priority, --move, --pods, --requests, -f and --queues"},
		{"usage -o xml", "want text, csv, json, yaml or jsonpath=EXPRESSION"},
		{"usage --since soon", `--since "soon": want a time`},
		{"events --since soon", `--since "soon": want a time such as`},
		{"events --since 2999-01-01", "want a time before now"},
		{"events --since 1h --new", "--since and --new: want one of them"},
		{"usage --by colour", `by "colour": want queue, namespace`},
		{"usage --price gpu", `price "gpu": want RESOURCE=NUMBER`},
		{"usage --since 1h --until 2h", "want a since before the until"},
		{"whatif -f -", "-f -: rayjob/a: spec: is null"},
		{"whatif --drain n --run-time 1h", "--run-time without -f: for which manifest?"},
		{"whatif --queues nowhere.yaml", "nowhere.yaml"},
		{"whatif --add-nodes n=x", "n=x"},
		{"whatif --add-shape cpu=4", `--add-shape cpu=4: want COUNT:RESOURCE=AMOUNT,...`},
		{"whatif --add-shape 2:cpu", `--add-shape 2:cpu: "cpu": want RESOURCE=AMOUNT`},
		{"whatif --requests train", "--requests train: want WORKLOAD:PODSET:RESOURCE=AMOUNT,..."},
		{"whatif --requests train:w:cpu", `--requests train:w:cpu: "cpu": want RESOURCE=AMOUNT`},
		{"whatif --shape-label pool=a", "--shape-label without --add-shape"},
		{"whatif --drain n --shape-cluster a", "--shape-cluster without --add-shape"},
		{"simulate --trace a.swf --jobs 5", "--jobs without --model"},
		{"simulate --trace a.swf --seed 5", "--seed without --model"},
		{"simulate --trace a.swf --load 0.5", "--load without --model"},
		{"get workloads -o xml", "want text, wide, json, yaml, name or jsonpath=EXPRESSION"},
		{"get workloads --phase asleep", `phase "asleep"`},
		{"get nodes --colour", "unknown flag"},
		{"describe workload", "one name or id"},
		{"describe node n -o xml", "want text, wide, json, yaml, name or jsonpath=EXPRESSION"},
		{"submit", "-f FILE"},
		{"submit a.yaml", "-f FILE"},
		{"submit -f /nowhere/at/all.yaml", "no such file"},
		{"submit -f " + empty, "no manifest"},
		{"submit -f - --wait=done", `cannot wait for "done"`},
		{"submit -f - --wait done", `cannot wait for "done": want submitted, queued, admitted, running, finished, as --wait=GOAL; manifests are given as -f FILE`},
		{"submit --wait a.yaml b.yaml", "-f FILE"},
		{"submit -f - --queue A.b", `queue "A.b"`},
		{"submit -f - --id one", "2 manifests"},
		{"submit -f - --namespace other", `in namespace "mine"`},
		{"submit --file /nonexistent", "no such file"},
		{"predict --file /nonexistent", "no such file"},
		{"health --wait 1s nonsense", "want http://"},
		{"submit -f - --timeout -1s", "want a positive duration"},
		{"submit -f - --priority 0 --priority-class urgent", "want one of them"},
		{"apply", "want -f FILE"},
		{"apply -f /nowhere/at/all.yaml", "no such file"},
		{"apply -f - -o xml", "want text, wide, json, yaml, name or jsonpath=EXPRESSION"},
		{"delete localqueue", "want KIND NAME"},
		{"delete queue a", `kind "queue" is not known; want one of ResourceFlavor`},
		{"cancel", "one name or id, or several"},
		{"cancel a --all --queue q", "or several, or --all"},
		{"cancel a --phase queued", "or several, or --all"},
		{"get queues -A -n a", "both set"},
		{"get workloads -A -n a", "both set"},
		{"eta -A -n a", "both set"},
		{"events -A -n a", "both set"},
		{"cancel a -l team=a", "or several, or --all"},
		{"cancel -l gpus>4", `--selector: label selector "gpus>4"`},
		{"get workloads -l team:a", `--selector: label selector "team:a"`},
		{"get workloads a -l team=a", "--selector"},
		{"get workloads --watch -l team=a", "events of workloads have no labels"},
		{"cancel --all", "want --queue or --namespace"},
		{"cancel --all --queue q --phase asleep", `phase "asleep"`},
		{"get workloads --sort-by colour", `--sort-by "colour": want finished, name`},
		{"release", "one name or id"},
		{"release a", "--force is missing"},
		{"release a --force", "--why is missing"},
		{"events -o xml", "want text, wide, json, yaml, name or jsonpath=EXPRESSION"},
		{"dev --fleet p3", "this command is in muster-dev: run `muster-dev up`"},
		{"demo", "this command is in muster-dev"},
		{"install --kubeconfig a", "this command is in muster-dev"},
		{"replay", "no database given"},
		{"replay --database-url x --since soon", "want a time"},
		{"replay --database-url-file /nowhere/at/all", "no such file"},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			got := run(t, job+"---\n"+strings.Replace(job, "name: a", "name: b, namespace: mine", 1), strings.Fields(test.args)...)
			if got.code != exit.Usage || !strings.Contains(got.errOut, test.want) {
				t.Errorf("exit code %d, standard error %q; want %d and %q", got.code, got.errOut, exit.Usage, test.want)
			}
			if got.out != "" {
				t.Errorf("standard output has %q", got.out)
			}
		})
	}
}

func TestNoServerIsThere(t *testing.T) {
	t.Setenv("MUSTER_DEV_FILE", filepath.Join(t.TempDir(), "dev.json"))
	t.Setenv("MUSTER_NATS_URL", "")
	if got := run(t, "", "get", "nodes"); got.code != exit.Unreachable || !strings.Contains(got.errOut, "no `muster-dev up` is running") {
		t.Errorf("without an address: %+v", got)
	}
	if got := run(t, "", "get", "nodes", "--nats-url", "nats://127.0.0.1:1"); got.code != exit.Unreachable {
		t.Errorf("without NATS: %+v", got)
	}
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	t.Setenv("MUSTER_NATS_URL", server.URL())
	for _, args := range []string{"get queues", "describe workload a", "cancel a", "events", "submit -f -", "submit -f - --wait=submitted"} {
		t.Run(args, func(t *testing.T) {
			if got := run(t, job, strings.Fields(args)...); got.code != exit.Unreachable || got.errOut == "" {
				t.Errorf("%s on a NATS without Muster: %+v", args, got)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	if got := run(t, "", "--help"); got.code != exit.OK || !strings.Contains(got.out, "Exit codes:") {
		t.Errorf("--help: %+v", got)
	}
	if got := run(t, ""); got.code != exit.OK || !strings.Contains(got.out, "submit") {
		t.Errorf("without a command: %+v", got)
	}
	if got := run(t, "", "version"); got.code != exit.OK || !strings.HasPrefix(got.out, "muster ") {
		t.Errorf("version: %+v", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run("completion for "+shell, func(t *testing.T) {
			if got := run(t, "", "completion", shell); got.code != exit.OK || !strings.Contains(got.out, "muster") {
				t.Errorf("completion for %s: exit code %d, %d bytes", shell, got.code, len(got.out))
			}
		})
	}
	if got := run(t, "", "__complete", "submit", "--wait", ""); !strings.Contains(got.out, "finished") {
		t.Errorf("completion of --wait: %+v", got)
	}
}

// TestAFullQueue: a submitter to a queue in which too much waits to be read is
// told to try again later, by an exit code of its own.
func TestAFullQueue(t *testing.T) {
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	t.Setenv("MUSTER_NATS_URL", server.URL())
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	const most = 20_000
	published := make([]bus.Published, most)
	for i := range published {
		if published[i], err = b.PublishAsync(event.SubmitSubject("default"), event.Envelope{ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range published {
		if err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := run(t, job, "submit", "-f", "-", "--wait=submitted")
	if got.code != exit.TryAgain || !strings.Contains(got.errOut, "again later") {
		t.Errorf("to the full queue: %+v", got)
	}
	if got := run(t, job, "submit", "-f", "-", "--wait", "submitted", "--queue", "other"); got.code != exit.OK {
		t.Errorf("to another queue: %+v", got)
	}
	if got := run(t, "", "get", "dead-letters"); got.code != exit.OK || got.out != "" || got.errOut != "No dead letters found.\n" {
		t.Errorf("dead letters, of which there are none: %+v", got)
	}
}
