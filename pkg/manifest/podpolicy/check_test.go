package podpolicy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/manifest/podpolicy"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
)

// job has a place for a pod's fields and for a container's, in every template.
const job = `apiVersion: ray.io/v1
kind: RayJob
metadata: {name: a}
spec:
  entrypoint: run
  submitterPodTemplate: {spec: {restartPolicy: Never, containers: [{name: s, image: i%[3]s}]%[4]s}}
  rayClusterSpec:
    enableInTreeAutoscaling: true
    autoscalerOptions: {%[5]s}
    headGroupSpec:
      rayStartParams: {}
      template: {spec: {containers: [{name: h, image: i}], initContainers: [{name: before, image: i%[6]s}]}}
    workerGroupSpecs:
    - groupName: w
      maxReplicas: 1
      rayStartParams: {}
      template: {spec: {containers: [{name: c, image: i%[1]s}]%[2]s}}
`

// places to put a container's or a pod's fields.
const (
	worker, workerPod, submitter, submitterPod, autoscaler, before = 0, 1, 2, 3, 4, 5
)

func manifest(t testing.TB, place int, fields string) json.RawMessage {
	t.Helper()
	at := make([]any, 6)
	for i := range at {
		at[i] = ""
	}
	if fields != "" && place != autoscaler {
		fields = ", " + fields
	}
	at[place] = fields
	encoded, err := yaml.YAMLToJSON(fmt.Appendf(nil, job, at...))
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestCheck(t *testing.T) {
	t.Parallel()
	baseline, restricted := workload.PodPolicy{}, workload.PodPolicy{Mode: workload.PodsRestricted}
	const workerAt = "spec.rayClusterSpec.workerGroupSpecs[0].template.spec"
	for _, c := range []struct {
		name   string
		policy workload.PodPolicy
		place  int
		fields string
		want   string // in the message; empty for allowed
	}{
		{"nothing", baseline, worker, "", ""},
		{"host network", baseline, workerPod, "hostNetwork: true", workerAt + ": host namespaces (hostNetwork=true); meet the Pod Security Standard baseline of Kubernetes v1.36"},
		{"allowed host network", workload.PodPolicy{HostNetwork: true}, workerPod, "hostNetwork: true", ""},
		{"host PID", baseline, submitterPod, "hostPID: true", "spec.submitterPodTemplate.spec: host namespaces (hostPID=true)"},
		{"host IPC", baseline, workerPod, "hostIPC: true", "(hostIPC=true)"},
		{"node name", baseline, workerPod, "nodeName: n1", `.nodeName: is "n1"`},
		{"system priority", baseline, workerPod, "priorityClassName: system-node-critical", `.priorityClassName: is "system-node-critical"`},
		{"priority", baseline, workerPod, "priorityClassName: high", ""},
		{"number of priority", baseline, workerPod, "priority: 7", ".priority: is set"},
		{"unlisted priority", workload.PodPolicy{PriorityClasses: []string{"low"}}, workerPod, "priorityClassName: high", `.priorityClassName: is "high"`},
		{"ephemeral container", baseline, workerPod, "ephemeralContainers: [{name: e, image: i}]", ".ephemeralContainers: is set"},
		{"host path", baseline, workerPod, "volumes: [{name: v, hostPath: {path: /etc}}]", workerAt + `: hostPath volumes (volume "v")`},
		{"allowed host path", workload.PodPolicy{HostPaths: []string{"/mnt/data"}}, workerPod, "volumes: [{name: v, hostPath: {path: /mnt/data/set}}]", ""},
		{"beside the allowed one", workload.PodPolicy{HostPaths: []string{"/mnt/data"}}, workerPod, "volumes: [{name: v, hostPath: {path: /mnt/database}}]", `hostPath volumes (volume "v")`},
		{"up from the allowed one", workload.PodPolicy{HostPaths: []string{"/mnt/data"}}, workerPod, "volumes: [{name: v, hostPath: {path: /mnt/data/../../etc}}]", `hostPath volumes (volume "v")`},
		{"other volumes", baseline, workerPod, "volumes: [{name: v, emptyDir: {}}, {name: s, secret: {secretName: x}}, {name: nf, nfs: {server: a, path: /}}]", ""},
		{"privileged", baseline, worker, "securityContext: {privileged: true}", workerAt + `: privileged (container "c" must not set securityContext.privileged=true)`},
		{"privileged init container", baseline, before, "securityContext: {privileged: true}", `privileged (container "before"`},
		{"privileged submitter", baseline, submitter, "securityContext: {privileged: true}", `spec.submitterPodTemplate.spec: privileged (container "s"`},
		{"privileged autoscaler", baseline, autoscaler, "securityContext: {privileged: true}", `spec.rayClusterSpec.autoscalerOptions: privileged (container "autoscaler"`},
		{"capability", baseline, worker, "securityContext: {capabilities: {add: [SYS_ADMIN]}}", `must not include "SYS_ADMIN"`},
		{"capability with prefix", baseline, worker, "securityContext: {capabilities: {add: [CAP_NET_RAW]}}", `must not include "CAP_NET_RAW"`},
		{"tracing", baseline, worker, "securityContext: {capabilities: {add: [SYS_PTRACE]}}", ""},
		{"allowed capability", workload.PodPolicy{Capabilities: []string{"IPC_LOCK"}}, worker, "securityContext: {capabilities: {add: [IPC_LOCK]}}", ""},
		{"proc mount", baseline, worker, "securityContext: {procMount: Unmasked}", `procMount to "Unmasked"`},
		{"seccomp", baseline, worker, "securityContext: {seccompProfile: {type: Unconfined}}", `seccompProfile (container "c"`},
		{"seccomp of the pod", baseline, workerPod, "securityContext: {seccompProfile: {type: Unconfined}}", workerAt + ": seccompProfile (pod must not"},
		{"AppArmor", baseline, worker, "securityContext: {appArmorProfile: {type: Unconfined}}", `forbidden AppArmor profile (container "c"`},
		{"SELinux", baseline, worker, "securityContext: {seLinuxOptions: {type: spc_t}}", `seLinuxOptions: type "spc_t"`},
		{"host process", baseline, worker, "securityContext: {windowsOptions: {hostProcess: true}}", "windowsOptions.hostProcess=true"},
		{"probe of another host", baseline, worker, "livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}", `probe or lifecycle host (container "c"`},
		{"lifecycle of another host", baseline, submitter, "lifecycle: {preStop: {httpGet: {host: a.b, port: 80}}}", `probe or lifecycle host (container "s"`},
		{"port of the node", baseline, worker, "ports: [{containerPort: 1, hostPort: 1}]", `hostPort (container "c" uses hostPort 1)`},
		{"allowed port of the node", workload.PodPolicy{HostPorts: true}, worker, "ports: [{containerPort: 1, hostPort: 1}]", ""},
		{"port of the allowed host network", workload.PodPolicy{HostNetwork: true}, workerPod, "hostNetwork: true, initContainers: [{name: x, image: i, ports: [{containerPort: 1, hostPort: 1}]}]", ""},
		{"sysctl", baseline, workerPod, "securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}", "forbidden sysctls (kernel.msgmax)"},
		{"unlisted account", workload.PodPolicy{ServiceAccounts: []string{"train"}}, workerPod, "serviceAccountName: admin", `.serviceAccountName: is "admin"; use one that the policy lists`},
		{"old name of the account", workload.PodPolicy{ServiceAccounts: []string{"train"}}, workerPod, "serviceAccount: admin", `.serviceAccount: is "admin"`},
		{"listed account", workload.PodPolicy{ServiceAccounts: []string{"train"}}, workerPod, "serviceAccountName: train", ""},
		{"unlisted toleration", workload.PodPolicy{Tolerations: []string{"nvidia.com/gpu"}}, workerPod, "tolerations: [{operator: Exists}]", `.tolerations[0].key: is ""`},
		{"any toleration", workload.PodPolicy{Tolerations: []string{"*"}}, workerPod, "tolerations: [{operator: Exists}]", ""},
		{"unlisted runtime class", workload.PodPolicy{RuntimeClasses: []string{"nvidia"}}, workerPod, "runtimeClassName: kata", ".runtimeClassName: is set to another"},
		{"restricted", restricted, worker, "", "allowPrivilegeEscalation != false"},
		{"switched off", workload.PodPolicy{Mode: workload.PodsUnchecked}, workerPod, "hostNetwork: true", ""},
		{"unreadable", baseline, workerPod, "hostNetwork: maybe", "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := podpolicy.Check(c.policy, manifest(t, c.place, c.fields))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v, want it allowed", err)
			case c.want != "" && (!errors.Is(err, podpolicy.ErrDenied) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want a denial with %q", err, c.want)
			}
		})
	}
}

func TestRestrictedAllows(t *testing.T) {
	t.Parallel()
	const pod = `{"kind": "Pod", "spec": {
		"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
		"containers": [{"name": "a", "image": "i", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]}}`
	restricted := workload.PodPolicy{Mode: workload.PodsRestricted}
	if err := podpolicy.Check(restricted, json.RawMessage(pod)); err != nil {
		t.Error(err)
	}
	for old, changed := range map[string]string{
		`"runAsNonRoot": true`: `"runAsNonRoot": true, "runAsUser": 0`, `{"type": "RuntimeDefault"}`: `null`,
		`["ALL"]`: `["KILL"]`, `"securityContext": {"runAs`: `"serviceAccountName": "x", "securityContext": {"runAs`,
		`"containers"`:                              `"volumes": [{"name": "v", "nfs": {"server": "a", "path": "/"}}], "containers"`,
		`"securityContext": {"allow`:                `"ports": [{"containerPort": 1, "hostPort": 1}], "securityContext": {"allow`,
		`"image": "i",`:                             `"image": "i", "startupProbe": {"tcpSocket": {"host": "a.b", "port": 1}},`,
		`"securityContext": {"runAsNonRoot": true,`: `"hostUsers": false, "securityContext": {`,
	} {
		t.Run(old, func(t *testing.T) {
			if err := podpolicy.Check(restricted, json.RawMessage(strings.Replace(pod, old, changed, 1))); !errors.Is(err, podpolicy.ErrDenied) {
				t.Errorf("with %s for %s: error %v, want a denial", changed, old, err)
			}
		})
	}
}

// The old way to say which AppArmor profile a container has is an annotation of the
// pod, wherever the pod is.
func TestAnnotationsOfPods(t *testing.T) {
	t.Parallel()
	const pod = `{"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": %q}}, "spec": {"containers": [{"name": "a", "image": "i"}]}}`
	const of = `{"kind": "RayCluster", "spec": {"workerGroupSpecs": [{"template": ` + pod + `}]}}`
	for _, manifest := range []string{pod, of} {
		if err := podpolicy.Check(workload.PodPolicy{}, fmt.Appendf(nil, manifest, "runtime/default")); err != nil {
			t.Error(err)
		}
		err := podpolicy.Check(workload.PodPolicy{}, fmt.Appendf(nil, manifest, "unconfined"))
		if !errors.Is(err, podpolicy.ErrDenied) || !strings.Contains(err.Error(), "unconfined") {
			t.Errorf("error %v, want a denial of the annotation", err)
		}
	}
}

// The version of Kubernetes that the standards are taken from is the one whose
// code checks them: a later module may know a later standard.
func TestTheStandardIsOfTheModulesVersion(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/pod-security-admission").Output()
	if err != nil {
		t.Fatal(err)
	}
	if version := strings.TrimSpace(string(out)); !strings.HasPrefix(version, "v0.36.") {
		t.Errorf("the module is of %s, the standard of v1.36: change both", version)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy workload.PodPolicy
		want   string
	}{
		{workload.PodPolicy{Mode: "strict"}, `mode: "strict": want baseline, restricted or off`},
		{workload.PodPolicy{Volumes: []string{"hostpath"}}, `volumes[0]: "hostpath" is no kind of volume in Kubernetes; want one of hostPath, emptyDir`},
		{workload.PodPolicy{HostPaths: []string{"data"}}, `hostPaths[0]: "data": want an absolute path`},
		{workload.PodPolicy{HostPaths: []string{"/a/../b"}}, "without"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if err := podpolicy.Validate(c.policy); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: error %v, want %q", c.policy, err, c.want)
			}
		})
	}
}

// TestSamplesPass: what is on by default lets KubeRay's own samples through.
func TestSamplesPass(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ray-project/kuberay/ray-operator").Output()
	if err != nil {
		t.Fatalf("find the ray-operator module: %v", err)
	}
	passed := 0
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(out)), "config", "samples"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq("\n"+string(content), "\n---") {
			object, err := ray.Read([]byte(document))
			if err != nil {
				continue // of another kind, or refused
			}
			if err := podpolicy.Check(workload.PodPolicy{}, object.Manifest); err != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
			}
			passed++
		}
		return nil
	})
	if err != nil || passed < 60 {
		t.Errorf("%d samples pass, %v", passed, err)
	}
}

// violations are of the baseline; a container's begin with securityContext.
var violations = []string{
	"hostNetwork: true", "hostPID: true", "hostIPC: true", "nodeName: n1", "priority: 1", "priorityClassName: system-x",
	"volumes: [{name: a, emptyDir: {}}, {name: v, hostPath: {path: /}}]", "securityContext: {sysctls: [{name: a.b, value: x}]}",
	"ephemeralContainers: [{name: e, image: i, securityContext: {privileged: true}}]",
	"securityContext: {privileged: true}", "securityContext: {capabilities: {add: [KILL, BPF]}}", "securityContext: {procMount: Unmasked}",
	"securityContext: {seccompProfile: {type: Unconfined}}", "securityContext: {windowsOptions: {hostProcess: true}}",
	"securityContext: {appArmorProfile: {type: Unconfined}}", "securityContext: {seLinuxOptions: {user: root}}",
}

// FuzzCheck: wherever a violation is put into a manifest, whatever is around it,
// it is found; and no manifest makes the check fail otherwise.
func FuzzCheck(f *testing.F) {
	for i := range violations {
		f.Add(uint64(i), `{"a": [{"spec": {"template": 1}}]}`)
	}
	f.Fuzz(func(t *testing.T, seed uint64, around string) {
		if err := podpolicy.Check(workload.PodPolicy{}, json.RawMessage(around)); err != nil && !errors.Is(err, podpolicy.ErrDenied) {
			t.Fatalf("error %v is no denial", err)
		}
		random := rand.New(rand.NewPCG(seed, 1))
		violation := violations[random.IntN(len(violations))]
		places := []int{workerPod, submitterPod}
		if strings.HasPrefix(violation, "securityContext") && !strings.Contains(violation, "sysctls") {
			places = []int{worker, submitter, before, autoscaler}
		}
		var nested any
		if err := json.Unmarshal(manifest(t, places[random.IntN(len(places))], violation), &nested); err != nil {
			t.Fatal(err)
		}
		for range random.IntN(4) { // as deep as a wrapper may put it
			nested = []any{map[string]any{"items": []any{0, map[string]any{"object": nested}}}, around}[0]
		}
		encoded, err := json.Marshal(nested)
		if err != nil {
			t.Fatal(err)
		}
		if err := podpolicy.Check(workload.PodPolicy{}, encoded); !errors.Is(err, podpolicy.ErrDenied) {
			t.Fatalf("%s is allowed in %s: %v", violation, encoded, err)
		}
	})
}
