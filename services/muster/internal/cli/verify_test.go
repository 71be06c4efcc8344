package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/world"
	"muster.dev/muster/services/internal/client/exit"
)

// certified is the certificate of a gang for which one flavor has no quota and the other
// no nodes.
func certified(t *testing.T) *certificate.Document {
	t.Helper()
	gpus := func(flavor string, nominal int64) quota.FlavorQuotas {
		return quota.FlavorQuotas{Name: flavor, Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: nominal}}}
	}
	r := world.New(world.Options{
		Start:  time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC),
		Queues: []state.Queue{{Name: "research", Namespaces: []string{"research"}}},
		Policy: quota.Config{
			Flavors: []quota.Flavor{{Name: "a100"}, {Name: "h100", NodeLabels: map[string]string{"gpu": "h100"}}},
			ClusterQueues: []quota.ClusterQueue{{Name: "research", ResourceGroups: []quota.ResourceGroup{{
				CoveredResources: []resource.Name{"nvidia.com/gpu"}, Flavors: []quota.FlavorQuotas{gpus("a100", 2), gpus("h100", 64)},
			}}}},
		},
	})
	r.SetNode(capacity.Node{Cluster: "east", Name: "gpu-0", Ready: true, Labels: map[string]string{"gpu": "h100"}, Allocatable: resource.List{"nvidia.com/gpu": 3, resource.Pods: 110}})
	gang := workload.Workload{
		ID: "d95ca1f6-ae1a-5dd0-97f5-9045a1390099", Queue: "research", Namespace: "research", Kind: workload.KindRayCluster, Name: "train", Digest: "train",
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 4, Template: workload.Template{
			Requests: resource.List{"nvidia.com/gpu": 1, resource.Pods: 1},
		}}},
	}
	if _, err := r.Submit(gang, ""); err != nil {
		t.Fatal(err)
	}
	document, why := r.Certify(gang.ID)
	if document == nil {
		t.Fatalf("no certificate: %s", why)
	}
	return document
}

func TestVerify(t *testing.T) {
	t.Parallel()
	const proven = `Proven: workload d95ca1f6-ae1a-5dd0-97f5-9045a1390099 (4 pods) cannot start.
With nvidia.com/gpu of flavor h100 for pod set workers:
  - cluster east (1 node): counted: there is room for 3 of the 4 pods of workers
With nvidia.com/gpu of flavor a100 for pod set workers:
  - quota: its pods request 4 nvidia.com/gpu, the queue may use 2
The proof is about the nodes and quota that the certificate states: compare them with the cluster.
`
	alone, err := json.Marshal(certified(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content    string
		code       int
		out, fault string
	}{
		"a certificate":     {string(alone), exit.OK, proven, ""},
		"an explanation":    {`{"name":"train","certificate":` + string(alone) + `}`, exit.OK, proven, ""},
		"a forged amount":   {strings.Replace(string(alone), `"available":2`, `"available":4`, 1), exit.Failure, "", "4 are available"},
		"a forged count":    {strings.Replace(string(alone), `"room":3`, `"room":2`, 1), exit.Failure, "", "but its premises give"},
		"an omitted flavor": {strings.Replace(string(alone), `"alternatives":[`, `"alternatives":[],"x":[`, 1), exit.Failure, "", "no certificate that this version reads"},
		"another file":      {"kind: RayCluster", exit.Failure, "", "not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "why.json")
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got := run(t, "", "verify", file)
			if got.code != c.code || got.out != c.out || !strings.Contains(got.errOut, c.fault) {
				t.Errorf("exit code %d, want %d\n%s%s", got.code, c.code, got.out, got.errOut)
			}
		})
	}
}
