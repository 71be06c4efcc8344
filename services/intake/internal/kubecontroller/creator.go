package kubecontroller

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/workload"
)

// accessReviews is the API server, for as whom an object is submitted.
type accessReviews interface {
	Stamps(ctx context.Context, policy string) (bool, error)
	Allowed(ctx context.Context, user bundle.Submitter, id bundle.Identity) (why string, err error)
}

// creator is the user that created the object, stamped by the API server; nil if it is
// unknown.
func (c *Controller) creator(ctx context.Context, object *unstructured.Unstructured, policy string) (*bundle.Submitter, error) {
	user := submitter(object)
	if user == nil {
		return nil, nil
	}
	if stamps, err := c.cluster.Stamps(ctx, policy); err != nil || !stamps {
		return nil, err
	}
	return user, nil
}

// submitterName is the name by which queues know a user of the cluster; for an unknown
// user it is the cluster's.
func (c *Controller) submitterName(user *bundle.Submitter) string {
	name := workload.ByKubernetes + "/" + c.options.Cluster
	if user != nil {
		name += "/" + user.User
	}
	return name
}

func submitter(object *unstructured.Unstructured) *bundle.Submitter {
	annotations := object.GetAnnotations()
	if annotations[userKey] == "" {
		return nil
	}
	user := &bundle.Submitter{User: annotations[userKey], UID: annotations[uidKey]}
	if groups := annotations[groupsKey]; groups != "" {
		user.Groups = strings.Split(groups, "\n")
	}
	return user
}
