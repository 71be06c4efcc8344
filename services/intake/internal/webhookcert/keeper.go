package webhookcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	registration "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Every is how often the Secret and the configurations are looked at.
const Every = 15 * time.Second

// mostSteps bounds the steps of one look: an authority, its publication, a certificate,
// and as many lost races.
const mostSteps = 8

// Keeper keeps the certificates of one installation. It may be used concurrently.
type Keeper struct {
	Client kubernetes.Interface
	// Namespace and Secret name the Secret, which must exist.
	Namespace, Secret string
	// Configuration is the name of the webhook configurations, of either kind, in which
	// the authorities are published.
	Configuration string
	// Hosts are the names and addresses of the server; at least one.
	Hosts  []string
	Logger *zap.Logger

	serving atomic.Pointer[tls.Certificate]
}

// Certificate returns the server's certificate, for tls.Config.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := k.serving.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("there is no certificate of the webhooks yet")
}

// Run keeps the certificates until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := k.Look(ctx, time.Now()); err != nil {
			k.Logger.Warn("cannot renew the certificates of the webhooks; trying again", zap.Error(err))
		}
	}
}

// Look does all steps that are due at the time.
func (k *Keeper) Look(ctx context.Context, now time.Time) error {
	for range mostSteps {
		done, err := k.step(ctx, now)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("Secret %s/%s: changes all the time", k.Namespace, k.Secret)
}

// step takes one step; done means that no other is due. It reads the configurations before
// the Secret: when another intake has published since, the update meets a conflict, so that
// no older authorities replace newer ones.
func (k *Keeper) step(ctx context.Context, now time.Time) (done bool, err error) {
	there, err := k.read(ctx)
	if err != nil {
		return false, err
	}
	secrets := k.Client.CoreV1().Secrets(k.Namespace)
	secret, err := secrets.Get(ctx, k.Secret, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("read Secret %s/%s: %w", k.Namespace, k.Secret, err)
	}
	found := read(secret.Data, k.Hosts, now)
	if found.server != nil {
		k.serving.Store(found.server)
	}
	published := found.signer != nil
	if published {
		if err := k.publish(ctx, there, found.bundle()); apierrors.IsConflict(err) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	next, err := found.next(secret.Data, k.Hosts, now, published)
	if err != nil || next == nil {
		return true, err
	}
	secret.Data = next
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsConflict(err) { // another intake was first: read again
		return false, fmt.Errorf("write Secret %s/%s: %w", k.Namespace, k.Secret, err)
	}
	return false, nil
}

// configurations are those that exist; nil for those that do not.
type configurations struct {
	validating *registration.ValidatingWebhookConfiguration
	mutating   *registration.MutatingWebhookConfiguration
}

func (k *Keeper) read(ctx context.Context) (there configurations, err error) {
	client := k.Client.AdmissionregistrationV1()
	if there.validating, err = client.ValidatingWebhookConfigurations().Get(ctx, k.Configuration, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		there.validating = nil
	} else if err != nil {
		return there, fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	if there.mutating, err = client.MutatingWebhookConfigurations().Get(ctx, k.Configuration, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		there.mutating = nil
	} else if err != nil {
		return there, fmt.Errorf("read MutatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	return there, nil
}

// publish has the API server trust the authorities.
func (k *Keeper) publish(ctx context.Context, there configurations, bundle []byte) error {
	var validating, mutating []*registration.WebhookClientConfig
	if there.validating != nil {
		for i := range there.validating.Webhooks {
			validating = append(validating, &there.validating.Webhooks[i].ClientConfig)
		}
	}
	if there.mutating != nil {
		for i := range there.mutating.Webhooks {
			mutating = append(mutating, &there.mutating.Webhooks[i].ClientConfig)
		}
	}
	client := k.Client.AdmissionregistrationV1()
	if trust(validating, bundle) {
		if _, err := client.ValidatingWebhookConfigurations().Update(ctx, there.validating, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("publish the authorities in ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
		}
	}
	if trust(mutating, bundle) {
		if _, err := client.MutatingWebhookConfigurations().Update(ctx, there.mutating, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("publish the authorities in MutatingWebhookConfiguration %s: %w", k.Configuration, err)
		}
	}
	return nil
}

// trust sets the bundle, and reports whether that changed anything.
func trust(clients []*registration.WebhookClientConfig, bundle []byte) (changed bool) {
	for _, client := range clients {
		if !bytes.Equal(client.CABundle, bundle) {
			client.CABundle, changed = bundle, true
		}
	}
	return changed
}

// namesOf parts hosts into names and addresses.
func namesOf(hosts []string) (names []string, addresses []net.IP) {
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			addresses = append(addresses, address)
		} else {
			names = append(names, host)
		}
	}
	return names, addresses
}
