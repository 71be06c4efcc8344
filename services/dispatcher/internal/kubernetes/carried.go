package kubernetes

import (
	"context"
	"fmt"
	"maps"
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

// carriedAPI is the API of one kind of objects in a namespace.
type carriedAPI[T metav1.Object] interface {
	Create(ctx context.Context, made T, options metav1.CreateOptions) (T, error)
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Update(ctx context.Context, changed T, options metav1.UpdateOptions) (T, error)
}

// PlaceCarried makes a copy. One that is there for another gang gets the present content and more
// owners, and what is no copy stays as it is: the namespace has its own.
func (c *Client) PlaceCarried(ctx context.Context, to CarriedCopy) error {
	if err := to.Content.Check(); err != nil {
		return err
	}
	if err := to.checkOwners(); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: to.Namespace, Name: to.Name, OwnerReferences: to.Owners, Annotations: to.marks(nil)}
	switch to.Kind {
	case workload.KindConfigMap:
		made := &corev1.ConfigMap{ObjectMeta: meta, Data: to.Content.Text, BinaryData: to.Content.Data}
		return place(ctx, c.core.CoreV1().ConfigMaps(to.Namespace), to, made, func(found *corev1.ConfigMap) error {
			found.Data, found.BinaryData = made.Data, made.BinaryData
			return nil
		})
	case workload.KindSecret:
		made := &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretType(to.Content.Type), Data: to.Content.Data}
		if err := checkSecretType(made.Type); err != nil {
			return err
		}
		return place(ctx, c.core.CoreV1().Secrets(to.Namespace), to, made, func(found *corev1.Secret) error {
			if found.Type != made.Type {
				return fmt.Errorf("the copy that is there has type %q, which cannot become %q; delete it", found.Type, made.Type)
			}
			found.Data = made.Data
			return nil
		})
	}
	return fmt.Errorf("kind %q is not carried", to.Kind)
}

// place creates a copy, or has fill change the one that is there.
func place[T metav1.Object](ctx context.Context, api carriedAPI[T], to CarriedCopy, made T, fill func(found T) error) error {
	_, err := api.Create(ctx, made, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := api.Get(ctx, to.Name, metav1.GetOptions{})
	if err != nil || !isCopy(found) {
		return err
	}
	changed, err := to.addOwners(found)
	if err != nil {
		return err
	}
	if annotations := found.GetAnnotations(); annotations[kube.CarriedDigestKey] != to.Content.Digest || annotations[kube.CarriedFromKey] != to.From {
		if err := fill(found); err != nil {
			return err
		}
		found.SetAnnotations(to.marks(annotations))
		changed = true
	}
	if changed {
		_, err = api.Update(ctx, found, metav1.UpdateOptions{})
	}
	return err
}

// OwnCarried adds the owners to a copy that is there, of which the content stays, and reports whether
// there is an object of the name, be it a copy or the namespace's own.
func (c *Client) OwnCarried(ctx context.Context, to CarriedCopy) (there bool, err error) {
	if err := to.checkOwners(); err != nil {
		return false, err
	}
	switch to.Kind {
	case workload.KindConfigMap:
		return own(ctx, c.core.CoreV1().ConfigMaps(to.Namespace), to)
	case workload.KindSecret:
		return own(ctx, c.core.CoreV1().Secrets(to.Namespace), to)
	}
	return false, fmt.Errorf("kind %q is not carried", to.Kind)
}

func own[T metav1.Object](ctx context.Context, api carriedAPI[T], to CarriedCopy) (there bool, err error) {
	found, err := api.Get(ctx, to.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil || !isCopy(found) {
		return err == nil, err
	}
	changed, err := to.addOwners(found)
	if changed {
		_, err = api.Update(ctx, found, metav1.UpdateOptions{})
	}
	return err == nil, err
}

// isCopy reports whether an object is from another cluster.
func isCopy(object metav1.Object) bool { return object.GetAnnotations()[kube.CarriedFromKey] != "" }

// checkOwners refuses a copy that no object of a gang would take along.
func (to CarriedCopy) checkOwners() error {
	if len(to.Owners) == 0 {
		return fmt.Errorf("the copy of %s %s/%s has no owner; it would stay for ever", to.Kind, to.Namespace, to.Name)
	}
	for _, owner := range to.Owners {
		if owner.UID == "" || owner.Name == "" || owner.Kind == "" || owner.APIVersion == "" {
			return fmt.Errorf("the copy of %s %s/%s has the owner %s %q with UID %q; want one that is there", to.Kind, to.Namespace, to.Name, owner.Kind, owner.Name, owner.UID)
		}
	}
	return nil
}

// marks adds to annotations from where a copy is, and its digest.
func (to CarriedCopy) marks(annotations map[string]string) map[string]string {
	marked := map[string]string{}
	maps.Copy(marked, annotations)
	marked[kube.CarriedFromKey], marked[kube.CarriedDigestKey] = to.From, to.Content.Digest
	return marked
}

// addOwners adds the owners that a copy lacks, and reports whether there are any.
func (to CarriedCopy) addOwners(found metav1.Object) (changed bool, err error) {
	if found.GetDeletionTimestamp() != nil {
		return false, fmt.Errorf("the earlier copy of %s %s/%s is being deleted", to.Kind, to.Namespace, to.Name)
	}
	owners := found.GetOwnerReferences()
	for _, owner := range to.Owners {
		if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			owners, changed = append(owners, owner), true
		}
	}
	found.SetOwnerReferences(owners)
	return changed, nil
}
