package kueue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/workload"
)

// All fields of a ProvisioningRequestConfig are read.
func TestAProvisioningRequestConfigIsRead(t *testing.T) {
	t.Parallel()
	objects, err := kueue.Parse([]byte(`apiVersion: kueue.x-k8s.io/v1beta1
kind: ProvisioningRequestConfig
metadata: {name: dws}
spec:
  provisioningClassName: queued-provisioning.gke.io
  podSetMergePolicy: IdenticalWorkloadSchedulingRequirements
  podSetUpdates:
    nodeSelector:
    - {key: autoscaling.gke.io/provisioning-request, valueFromProvisioningClassDetail: ResizeRequestName}
`))
	if err != nil || len(objects) != 1 || len(objects[0].Notes) > 0 {
		t.Fatalf("read %+v, %v", objects, err)
	}
	want := []quota.ProvisioningConfig{{
		Name: "dws", Class: "queued-provisioning.gke.io", MergePolicy: workload.IdenticalScheduling,
		Updates: &quota.PodSetUpdates{NodeSelector: []quota.NodeSelectorUpdate{{Key: "autoscaling.gke.io/provisioning-request", Detail: "ResizeRequestName"}}},
	}}
	if diff := cmp.Diff(want, objects[0].Policy.ProvisioningConfigs); diff != "" {
		t.Errorf("the configuration (-want +got):\n%s", diff)
	}
}
