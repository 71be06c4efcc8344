package mistakes

import "strings"

// wrapper is a good AppWrapper of a Job with pairs of old and new text replaced.
func wrapper(changes ...string) string {
	return strings.NewReplacer(changes...).Replace(`apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata:
  name: train
spec:
  components:
  - podSets:
    - {replicas: 2, path: template.spec.template}
    template:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: train}
      spec:
        parallelism: 2
        completions: 2
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: busybox
              resources: {requests: {cpu: 1}}
`)
}

// podSets are good pod sets with pairs of old and new text replaced.
func podSets(changes ...string) string {
	return strings.NewReplacer(changes...).Replace(`apiVersion: muster.dev/v1
kind: PodSets
metadata:
  name: plain
spec:
  podSets:
  - name: workers
    count: 2
    template:
      spec:
        containers:
        - {name: main, image: busybox, resources: {requests: {cpu: 1}}}
`)
}

// wrappers are wrong AppWrappers and pod sets.
func wrappers() group {
	g, add := submitting("AppWrappers and pod sets")
	for _, c := range []change{
		{"Another version of the API, of an AppWrapper", "codeflare.dev/v1beta2", "codeflare.dev/v1"},
		{"No components", "  components:", "  component:"},
		{"A path that leads nowhere", "path: template.spec.template", "path: template.spec.jobTemplate"},
		{"A count of a pod set that is negative", "replicas: 2,", "replicas: -2,"},
		{"A Secret in an AppWrapper", "apiVersion: batch/v1\n      kind: Job", "apiVersion: v1\n      kind: Secret"},
		{"A role in an AppWrapper", "  - podSets:\n    - {replicas: 2, path: template.spec.template}\n    template:\n      apiVersion: batch/v1\n      kind: Job", "  - template:\n      apiVersion: rbac.authorization.k8s.io/v1\n      kind: Role"},
		{"An unknown kind in an AppWrapper", "apiVersion: batch/v1\n      kind: Job", "apiVersion: batch/v1\n      kind: Jobs"},
		{"A foreign namespace in an AppWrapper", "metadata: {name: train}\n      spec", "metadata: {name: train, namespace: kube-system}\n      spec"},
		{"A wrapped object without a name", "metadata: {name: train}\n      spec", "metadata: {}\n      spec"},
		{"A wrapped pod of the node's network", "restartPolicy: Never", "restartPolicy: Never\n            hostNetwork: true"},
	} {
		add(c.name, "", wrapper(c.old, c.replacement))
	}
	for _, c := range []change{
		{"Another version of the API, of pod sets", "muster.dev/v1\n", "muster.dev/v2\n"},
		{"A pod set without a name", "  - name: workers\n    count", "  - count"},
		{"A pod set whose count is a word", "count: 2", "count: two"},
		{"A pod set without pods", "count: 2", "count: 0"},
		{"A field of pod sets that does not exist", "count: 2", "replicas: 2"},
		{"A pod set without containers", "        containers:\n        - {name: main, image: busybox, resources: {requests: {cpu: 1}}}", "        containers: []"},
	} {
		add(c.name, "", podSets(c.old, c.replacement))
	}
	return *g
}
