package mistakes

import "strings"

// commandLines are wrong commands and flags.
func commandLines() group {
	g := group{title: "The command line", intro: "The exit code, and what `muster` prints to standard error."}
	for _, c := range []struct{ name, typed string }{
		{"A command that is misspelt", "submti -f job.yaml"},
		{"A flag that does not exist", "get nodes --colour"},
		{"A format that does not exist", "get workloads -o xml"},
		{"Nothing to get", "get"},
		{"A kind that does not exist", "get pods"},
		{"A phase that does not exist", "get workloads --phase asleep"},
		{"A queue that does not exist, in get", "get queues defualt"},
		{"A node that does not exist, in describe", "describe node gpu-0"},
		{"A workload that does not exist, in describe", "describe workload glu"},
		{"A workload that does not exist, in explain", "explain glu"},
		{"A workload that does not exist, in cancel", "cancel glu"},
		{"Nothing to cancel", "cancel"},
		{"No file to submit", "submit"},
		{"A file as an argument", "submit job.yaml"},
		{"A file that does not exist", "submit -f jbo.yaml"},
		{"A file without a manifest", "submit -f empty.yaml"},
		{"A goal that does not exist", "submit -f job.yaml --wait=done"},
		{"A queue with an invalid name, in submit", "submit -f job.yaml --queue Default_Queue"},
		{"A priority that is a word, in submit", "submit -f job.yaml --priority high"},
		{"A priority and a priority class, in submit", "submit -f job.yaml --priority 1 --priority-class urgent"},
		{"A timeout without a unit", "submit -f job.yaml --timeout 30"},
		{"A timeout that is negative", "submit -f job.yaml --timeout -30s"},
		{"One id for two manifests", "submit -f two.yaml --id nightly"},
		{"A source that is empty", "submit -f job.yaml --source="},
		{"No reason to release", "release glu --force"},
		{"A kind that cannot be deleted", "delete queue research"},
		{"A kind to delete without a name", "delete localqueue"},
		{"A file to apply that does not exist", "apply -f queues.yaml"},
		{"An invalid URL of NATS", "get nodes --nats-url localhost:what"},
		{"A server that does not answer", "get nodes --nats-url nats://127.0.0.1:1"},
		{"A key file that does not exist", "get nodes --nats-credentials key.nk"},
		{"A time to replay from that is not a time", "replay --database-url x --since soon"},
		{"No manifest to predict", "predict -f empty.yaml"},
		{"A command of another program", "dev --fleet p3"},
		{"A queue whose events do not exist", "events --queue Default_Queue"},
	} {
		g.mistakes = append(g.mistakes, mistake{name: c.name, typed: "muster " + c.typed, give: func(w *world) string {
			return w.run(map[string]string{"job.yaml": cluster(), "empty.yaml": "# nothing\n", "two.yaml": cluster() + "---\n" + cluster("name: glue", "name: other")},
				strings.Fields(c.typed)...)
		}})
	}
	return g
}
