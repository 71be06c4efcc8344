package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// rayclusterComplete is the AppWrapper of the KubeRay guide to MCAD, of that time's
// version of ray.io: a head of two CPUs and a worker of four.
func rayclusterComplete(name string) string {
	return fmt.Sprintf(`apiVersion: workload.codeflare.dev/v1beta1
kind: AppWrapper
metadata: {name: %[1]s}
spec:
  resources:
    GenericItems:
    - replicas: 1
      custompodresources:
      - replicas: 1
        requests: {cpu: 2, memory: 8G, nvidia.com/gpu: 0}
        limits: {cpu: 2, memory: 8G, nvidia.com/gpu: 0}
      - replicas: 1
        requests: {cpu: 4, memory: 8G, nvidia.com/gpu: 0}
        limits: {cpu: 4, memory: 8G, nvidia.com/gpu: 0}
      generictemplate:
        apiVersion: ray.io/v1alpha1
        kind: RayCluster
        metadata: {name: %[1]s, labels: {controller-tools.k8s.io: "1.0"}}
        spec:
          rayVersion: '2.5.0'
          headGroupSpec:
            serviceType: ClusterIP
            rayStartParams: {dashboard-host: '0.0.0.0'}
            template:
              metadata: {labels: {}}
              spec:
                containers:
                - name: ray-head
                  image: 'rayproject/ray:2.5.0'
                  ports: [{containerPort: 6379, name: gcs}, {containerPort: 8265, name: dashboard}, {containerPort: 10001, name: client}]
                  lifecycle: {preStop: {exec: {command: [/bin/sh, -c, ray stop]}}}
                  volumeMounts: [{mountPath: /tmp/ray, name: ray-logs}]
                  resources: {limits: {cpu: 2, memory: 8G}, requests: {cpu: 2, memory: 8G}}
                volumes: [{name: ray-logs, emptyDir: {}}]
          workerGroupSpecs:
          - groupName: small-group
            replicas: 1
            minReplicas: 1
            maxReplicas: 10
            rayStartParams: {}
            template:
              spec:
                containers:
                - name: ray-worker
                  image: 'rayproject/ray:2.5.0'
                  lifecycle: {preStop: {exec: {command: [/bin/sh, -c, ray stop]}}}
                  volumeMounts: [{mountPath: /tmp/ray, name: ray-logs}]
                  resources: {limits: {cpu: 4, memory: 8G}, requests: {cpu: 4, memory: 8G}}
                volumes: [{name: ray-logs, emptyDir: {}}]
`, name)
}

// glue is the AppWrapper of the blog's benchmark: demand declared as two alike
// pods, a head without and a worker with two GPUs wrapped.
func glue(wrapper, cluster string) string {
	return fmt.Sprintf(`apiVersion: workload.codeflare.dev/v1beta1
kind: AppWrapper
metadata: {name: %[1]s}
spec:
  priority: 9
  resources:
    Items: []
    GenericItems:
    - replicas: 1
      custompodresources:
      - replicas: 2
        requests: {cpu: 3, memory: 16G, nvidia.com/gpu: 1}
        limits: {cpu: 3, memory: 16G, nvidia.com/gpu: 1}
      generictemplate:
        apiVersion: ray.io/v1alpha1
        kind: RayCluster
        metadata: {name: %[2]s, labels: {controller-tools.k8s.io: "1.0"}}
        spec:
          rayVersion: '1.12.0'
          headGroupSpec:
            serviceType: ClusterIP
            rayStartParams: {dashboard-host: '0.0.0.0', block: 'true', num-gpus: '0'}
            template:
              spec:
                containers:
                - name: ray-head
                  image: 'projectcodeflare/codeflare-glue:latest'
                  env: [{name: ENDPOINT_URL, valueFrom: {secretKeyRef: {name: glue-s3-creds, key: ENDPOINT_URL}}}]
                  resources: {limits: {cpu: "2", memory: 16G, nvidia.com/gpu: "0"}, requests: {cpu: "2", memory: 16G, nvidia.com/gpu: "0"}}
          workerGroupSpecs:
          - groupName: small-group
            replicas: 1
            minReplicas: 1
            maxReplicas: 1
            rayStartParams: {block: 'true', num-gpus: '2'}
            template:
              spec:
                initContainers: [{name: init-myservice, image: 'busybox:1.28', command: [sh, -c, until nslookup $RAY_IP; do sleep 2; done]}]
                containers:
                - name: ray-worker
                  image: 'projectcodeflare/codeflare-glue:latest'
                  env: [{name: ENDPOINT_URL, valueFrom: {secretKeyRef: {name: glue-s3-creds, key: ENDPOINT_URL}}}]
                  resources: {limits: {cpu: "4", memory: 16G, nvidia.com/gpu: "2"}, requests: {cpu: "4", memory: 16G, nvidia.com/gpu: "2"}}
`, wrapper, cluster)
}

// textClassifier is the RayJob of the Kueue guide, KubeRay's own sample, with the
// label that the guide adds, and what it is to do in the dev cluster.
func textClassifier(t *testing.T, queue string) string {
	t.Helper()
	const file, name = "pytorch-text-classifier/ray-job.pytorch-distributed-training.yaml", "  generateName: pytorch-text-classifier-\n"
	for _, s := range readSamples(t) {
		if s.name != file {
			continue
		}
		labelled := strings.Replace(string(s.manifest), name, name+"  labels:\n    kueue.x-k8s.io/queue-name: "+queue+
			"\n  annotations: {devcluster.muster.dev/job-outcome: succeeded, devcluster.muster.dev/job-duration: 3s}\n", 1)
		if labelled == string(s.manifest) {
			t.Fatalf("%s has no line %q", file, name)
		}
		return labelled
	}
	t.Fatalf("there is no %s among KubeRay's samples", file)
	return ""
}
