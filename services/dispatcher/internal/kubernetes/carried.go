package kubernetes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// CarriedCopy is a ConfigMap or Secret that is copied from another cluster.
type CarriedCopy struct {
	Kind, Namespace, Name string
	From                  string // the cluster
	Content               *query.CarriedObject
	// Owners are the objects with the last of which the copy goes.
	Owners []metav1.OwnerReference
}

// bound are types of Secrets that are good for their own cluster alone, or hand out rights there.
var bound = []corev1.SecretType{corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken, "helm.sh/release.v1"}

// ReadCarried reads an object for another cluster.
func (c *Client) ReadCarried(ctx context.Context, wanted query.CarriedWanted) (*query.CarriedObject, error) {
	content := &query.CarriedObject{}
	var err error
	switch wanted.Kind {
	case workload.KindConfigMap:
		var found *corev1.ConfigMap
		if found, err = c.core.CoreV1().ConfigMaps(wanted.Namespace).Get(ctx, wanted.Name, metav1.GetOptions{}); err == nil {
			content.Text, content.Data = found.Data, found.BinaryData
		}
	case workload.KindSecret:
		var found *corev1.Secret
		if found, err = c.core.CoreV1().Secrets(wanted.Namespace).Get(ctx, wanted.Name, metav1.GetOptions{}); err == nil {
			content.Type, content.Data = string(found.Type), found.Data
			err = checkSecretType(found.Type)
		}
	default:
		err = fmt.Errorf("kind %q is not carried", wanted.Kind)
	}
	if err != nil {
		return nil, err
	}
	if content.Digest, err = content.Sum(); err != nil {
		return nil, err
	}
	return content, nil
}

func checkSecretType(of corev1.SecretType) error {
	if slices.Contains(bound, of) {
		return fmt.Errorf("a Secret of type %s is not carried", of)
	}
	return nil
}

// PlaceCarried makes a copy. One that is there for another gang gets the present content and more
// owners, and what is no copy stays as it is: the namespace has its own.
func (c *Client) PlaceCarried(ctx context.Context, to CarriedCopy) error {
	if err := to.Content.Check(); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: to.Namespace, Name: to.Name, OwnerReferences: to.Owners}
	to.mark(&meta)
	if to.Kind == workload.KindSecret {
		if err := checkSecretType(corev1.SecretType(to.Content.Type)); err != nil {
			return err
		}
		return c.placeSecret(ctx, to, &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretType(to.Content.Type), Data: to.Content.Data})
	}
	return c.placeConfigMap(ctx, to, &corev1.ConfigMap{ObjectMeta: meta, Data: to.Content.Text, BinaryData: to.Content.Data})
}

func (c *Client) placeConfigMap(ctx context.Context, to CarriedCopy, made *corev1.ConfigMap) error {
	api := c.core.CoreV1().ConfigMaps(to.Namespace)
	_, err := api.Create(ctx, made, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := api.Get(ctx, to.Name, metav1.GetOptions{})
	if err != nil || !to.adopts(&found.ObjectMeta) {
		return err
	}
	found.Data, found.BinaryData = made.Data, made.BinaryData
	_, err = api.Update(ctx, found, metav1.UpdateOptions{})
	return err
}

func (c *Client) placeSecret(ctx context.Context, to CarriedCopy, made *corev1.Secret) error {
	api := c.core.CoreV1().Secrets(to.Namespace)
	_, err := api.Create(ctx, made, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := api.Get(ctx, to.Name, metav1.GetOptions{})
	if err != nil || !to.adopts(&found.ObjectMeta) {
		return err
	}
	found.Data = made.Data
	_, err = api.Update(ctx, found, metav1.UpdateOptions{})
	return err
}

// mark notes on a copy from where it is, and its digest.
func (to CarriedCopy) mark(meta *metav1.ObjectMeta) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[kube.CarriedFromKey], meta.Annotations[kube.CarriedDigestKey] = to.From, to.Content.Digest
}

// adopts changes the metadata of an object that is there already, if that is a copy that lacks an
// owner or the content. It reports whether the object is to be written.
func (to CarriedCopy) adopts(meta *metav1.ObjectMeta) bool {
	if meta.Annotations[kube.CarriedFromKey] == "" {
		return false
	}
	changed := meta.Annotations[kube.CarriedDigestKey] != to.Content.Digest || meta.Annotations[kube.CarriedFromKey] != to.From
	for _, owner := range to.Owners {
		if !slices.ContainsFunc(meta.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			meta.OwnerReferences, changed = append(meta.OwnerReferences, owner), true
		}
	}
	to.mark(meta)
	return changed
}
