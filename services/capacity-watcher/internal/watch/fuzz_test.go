package watch

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

// direct is a target without a publisher.
type direct struct{ *observed.Cache }

func (d direct) Apply(change func(*observed.Cache)) { change(d.Cache) }

// FuzzSeen checks that every node and pod that decodes can be recorded, and that
// queue-manager accepts its observation.
func FuzzSeen(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"n","labels":{"kubernetes.io/hostname":"n"}},"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]},"status":{"allocatable":{"cpu":"64","memory":"1Ti","nvidia.com/gpu":"8","pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}}`), "w")
	f.Add([]byte(`{"metadata":{"name":"p","namespace":"ns","uid":"u","labels":{"muster.dev/attempt":"-9"},"ownerReferences":[{"apiVersion":"a/b/c","controller":true,"uid":"u"}]},"spec":{"nodeName":"n","containers":[{"name":"c","resources":{"requests":{"cpu":"9223372036854775807","memory":"8Ei"}},"ports":[{"hostPort":80}]},{"name":"d","resources":{"requests":{"cpu":"1","memory":"8Ei"}}}]},"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":137}}}]}}`), "../x")
	f.Add([]byte(`{"spec":{"nodeName":"n","containers":[{"name":"c","resources":{"requests":{"memory":"9e18","cpu":"-1"},"limits":{"memory":"1n"}}}],"overhead":{"cpu":"9e18"}}}`), "")
	f.Add([]byte(`{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c"}]}}`), "../x")
	f.Fuzz(func(t *testing.T, data []byte, label string) {
		p := observed.New("c")
		v := &view{Options: Options{Cluster: "c", Logger: zap.NewNop()}, target: direct{p}}
		listed := func() {}
		node := &corev1.Node{}
		if readBounded(data, node) {
			node.Name = "n"
			if err := v.nodes(listed).Add(node); err != nil {
				t.Fatal(err)
			}
		}
		pod := &corev1.Pod{}
		if readBounded(data, pod) {
			pod.Labels = maps.Clone(pod.Labels)
			if pod.Labels == nil {
				pod.Labels = map[string]string{}
			}
			pod.Labels["muster.dev/workload"] = label
			for _, into := range []func(*corev1.Pod) error{
				func(pod *corev1.Pod) error { return v.members(listed).Add(pod) },
				func(pod *corev1.Pod) error { return v.unmanaged(listed).Add(pod) },
			} {
				if err := into(pod); err != nil {
					t.Fatal(err)
				}
			}
			if id := workloadOf(pod); id != unknownWorkload && !workload.ValidName(string(id)) {
				t.Fatalf("the pod is of workload %q", id)
			}
		}
		for _, key := range p.Drain(100) {
			observation, _ := p.Observation(key, event.Version{Session: 1, Seq: 1})
			encoded, err := event.Marshal("1", "test", time.Unix(1, 0), "", observation)
			if err != nil {
				t.Fatalf("the observation cannot be encoded: %v", err)
			}
			envelope, err := event.Parse(encoded)
			if err == nil {
				_, err = event.Decode(envelope)
			}
			if err != nil {
				t.Fatalf("the observation cannot be decoded: %v\n%s", err, encoded)
			}
		}
	})
}

// readBounded reads an object as the API server serves it: the server canonicalizes each
// quantity, so none is longer than the parser's bound.
func readBounded(data []byte, into any) bool {
	var tree map[string]any
	return json.Unmarshal(data, &tree) == nil && kube.Decode("", tree, into) == nil
}
