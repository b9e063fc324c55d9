package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// SourceAnnotation marks a bootstrap data secret as ours and says, as a digest, what its data was made from.
const SourceAnnotation = "bootstrap.cluster.x-k8s.io/discovery-source"

// ModifiedAnnotation says, on a bootstrap data secret, when assisted-service last changed what its data was made from.
const ModifiedAnnotation = "bootstrap.cluster.x-k8s.io/discovery-modified"

// bootData puts the boot image in place and hands out the bootstrap data, strictly in this order: the infrastructure provider waits for the
// data, and a host must never boot the placeholder image of the user's template.
func (r *Reconciler) bootData(ctx context.Context, s *scope) (bool, error) {
	const stage = bootstrapv1.DataSecretAvailableCondition
	mode, err := bootmode.Choose(s.Config.Status.BootMode, s.Config.Spec.BootMode, s.InfraMachine)
	if err != nil {
		return s.wait(stage, bootstrapv1.InvalidConfigurationReason, "%s", err)
	}
	if s.DataSecret != nil && s.DataSecret.Annotations[SourceAnnotation] == "" {
		return s.wait(stage, bootstrapv1.InvalidConfigurationReason, "Secret %s exists and is not ours: delete it or the Machine", s.DataSecret.Name)
	}
	if s.DataHandedOut() && s.HostChosen() && s.bootImageOutdated(mode) {
		return s.waitForAnotherMachine()
	}
	if s.DataHandedOut() && s.DataSecret != nil && s.HostChosen() {
		r.ignitions.Drop(keyOf(s.Config)) // what comes now comes too late
		return s.handOut(mode, s.HandedOut())
	}
	source := mode.Source(assisted.ObserveImage(s.infraEnv))
	if source == "" {
		if s.DataHandedOut() && s.DataSecret != nil {
			return s.handOut(mode, s.HandedOut())
		}
		return s.wait(stage, bootstrapv1.DiscoveryImageUnavailableReason, "InfraEnv %s offers nothing to boot from in mode %s: check that assisted-service's image service is enabled", s.infraEnv.Name, mode.Name())
	}
	if proceed, err := r.bootImage(ctx, s, mode, source); !proceed {
		return proceed, err
	}
	if proceed, err := r.applyDataSecret(ctx, s, mode, source); !proceed {
		return proceed, err
	}
	if !s.DataHandedOut() {
		if err := r.protect(ctx, s, true); err != nil {
			return false, err
		}
	}
	return s.handOut(mode, s.Config.Name)
}

// handOut publishes the name of the secret.
func (s *scope) handOut(mode bootmode.Mode, secret string) (bool, error) {
	s.status.DataSecretName = secret
	s.status.Initialization.DataSecretCreated = ptr.To(true)
	s.status.BootMode = mode.Name()
	mismatch := s.NetworkMismatch()
	s.warnOfNetworkMismatch(mismatch)
	s.pass(bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretAvailableReason, mismatch)
	return true, nil
}

// bootImage makes the infrastructure machine boot the source, as long as its host is not chosen: CAPM3 copies the image to the BareMetalHost
// once (v1.13), and a BareMetalHost is provisioned again when its image changes.
func (r *Reconciler) bootImage(ctx context.Context, s *scope, mode bootmode.Mode, source string) (bool, error) {
	const stage = bootstrapv1.DataSecretAvailableCondition
	desired := mode.BootImage(s.InfraMachine, source)
	if desired == nil {
		return true, nil
	}
	observed := s.InfraMachine
	if !s.HostChosen() {
		changed, err := r.applier.Apply(ctx, desired, observed)
		if kube.Refused(err) {
			return s.wait(stage, bootstrapv1.BootImageRejectedReason, "%s %s cannot take the boot image: %s",
				observed.GetKind(), observed.GetName(), assisted.RedactURLs(err.Error()))
		}
		if err != nil {
			return false, withoutQuery(err)
		}
		if changed {
			observed = desired
		}
	}
	if s.DataHandedOut() || bootmode.BootsFrom(observed, source) {
		return true, nil
	}
	if s.HostChosen() {
		return s.wait(stage, bootstrapv1.BootImageRejectedReason, "a host was chosen for %s %s before its boot image was in place: delete the Machine", observed.GetKind(), observed.GetName())
	}
	return s.wait(stage, bootstrapv1.BootImageRejectedReason, "%s %s does not keep the boot image: find out who else writes spec.image", observed.GetKind(), observed.GetName())
}

// withoutQuery keeps credentials in URLs out of logs.
func withoutQuery(err error) error { return errors.New(assisted.RedactURLs(err.Error())) }

// applyDataSecret makes the secret, and makes it again when its source is another.
func (r *Reconciler) applyDataSecret(ctx context.Context, s *scope, mode bootmode.Mode, source string) (bool, error) {
	ca, err := r.trustedCA(ctx, s)
	if err != nil {
		return false, err
	}
	if ca != nil && ca.missing != "" {
		return s.wait(bootstrapv1.DataSecretAvailableCondition, bootstrapv1.InvalidConfigurationReason, "spec.assistedServiceCA: %s", ca.missing)
	}
	digest := sourceDigest(s.infraEnv, s.Networks, mode, source)
	annotations := map[string]string{SourceAnnotation: digest}
	if id := assisted.InfraEnvOfURL(source); id != "" && mode.UserDataFollowsSource() {
		annotations[InfraEnvAnnotation] = id
	}
	if s.DataSecret != nil && holds(s.DataSecret.Annotations, annotations) {
		return true, r.keepOwner(ctx, s)
	}
	if left := r.written.unseenData(keyOf(s.Config), digest, r.now()); left > 0 {
		s.again.In(left)
		return true, nil
	}
	data, proceed, err := r.userData(ctx, s, mode, source, digest, ca)
	if !proceed || err != nil {
		return false, err
	}
	if data.Modified != "" {
		annotations[ModifiedAnnotation] = data.Modified
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.Config.Namespace,
			Name:            s.Config.Name,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.Cluster.Name},
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{ownerOf(s.Config)},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": data.Value, "format": []byte("ignition")},
	}
	if _, err := r.applier.Apply(ctx, secret, nil); err != nil {
		return false, fmt.Errorf("failed to write the bootstrap data: %w", err)
	}
	r.written.rememberData(keyOf(s.Config), digest, r.now())
	r.ignitions.Drop(keyOf(s.Config))
	return true, nil
}

// userData makes the bootstrap data. What has to be downloaded comes in the background; failures are tried again with back-off: a download cannot be
// watched.
func (r *Reconciler) userData(ctx context.Context, s *scope, mode bootmode.Mode, source, digest string, ca *caBundle) (bootmode.Data, bool, error) {
	const stage = bootstrapv1.DataSecretAvailableCondition
	if !mode.UserDataFollowsSource() {
		data, err := mode.UserData(ctx, source, nil)
		return data, err == nil, err
	}
	key := keyOf(s.Config)
	attempt := key.String() + " " + digest
	if ca != nil {
		attempt += " " + ca.version
	}
	if r.downloads.IsInBackOffSinceUpdate(attempt, r.now()) {
		s.again.In(r.downloads.Get(attempt))
		s.stayWith(stage, "the discovery ignition could not be downloaded and is tried again")
		return bootmode.Data{}, false, nil
	}
	data, err := r.ignitions.Get(key, attempt, func(ctx context.Context) (bootmode.Data, error) {
		bundle, err := r.readCA(ctx, key.Namespace, ca)
		if err != nil {
			return bootmode.Data{}, err
		}
		return mode.UserData(ctx, source, bundle)
	}, r.waker(s))
	switch {
	case errors.Is(err, bootmode.ErrPending):
		if recorded := s.Recorded(stage); recorded != nil && recorded.Reason == bootstrapv1.IgnitionDownloadFailedReason {
			s.stayWith(stage, "")
			return bootmode.Data{}, false, nil
		}
		_, err = s.wait(stage, bootstrapv1.WaitingForDiscoveryImageReason, "downloading the discovery ignition of InfraEnv %s", s.infraEnv.Name)
		return bootmode.Data{}, false, err
	case err != nil:
		r.tryAgain(s, attempt)
		_, err = s.wait(stage, bootstrapv1.IgnitionDownloadFailedReason, "cannot download the discovery ignition of InfraEnv %s: %s", s.infraEnv.Name, err)
		return bootmode.Data{}, false, err
	case s.holdsDataOf(data.Modified) && r.downloads.Get(attempt) < takesIn:
		r.tryAgain(s, attempt)
		_, err = s.wait(stage, bootstrapv1.WaitingForDiscoveryImageReason, "waiting for assisted-service to take the change of InfraEnv %s into the discovery ignition", s.infraEnv.Name)
		return bootmode.Data{}, false, err
	}
	r.downloads.DeleteEntry(attempt)
	return data, true, nil
}

// takesIn is the back-off after which what was downloaded is taken although assisted-service says that it changed nothing: it tells only seconds.
const takesIn = 16 * time.Second

// holdsDataOf tells whether the secret holds what assisted-service served at the same state already. Then it has not taken in the change for which the
// data is made again: without authentication its URL stays the same, and nothing but this can be seen.
func (s *scope) holdsDataOf(modified string) bool {
	return modified != "" && s.DataSecret != nil && s.DataSecret.Annotations[ModifiedAnnotation] == modified
}

// tryAgain drops what was downloaded, and downloads again after a while.
func (r *Reconciler) tryAgain(s *scope, attempt string) {
	r.ignitions.Drop(keyOf(s.Config))
	r.downloads.Next(attempt, time.Now())
	r.downloads.GC()
	s.again.In(r.downloads.Get(attempt))
}

// stayWith keeps the condition of a failed download until the next one ended.
func (s *scope) stayWith(stage, message string) {
	s.conditions = append(s.conditions, ptr.Deref(s.Recorded(stage), metav1.Condition{
		Type: stage, Status: metav1.ConditionFalse, Reason: bootstrapv1.IgnitionDownloadFailedReason, Message: message,
	}))
}

// waker returns a function that reconciles the config again.
func (r *Reconciler) waker(s *scope) func() {
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: s.Config.Namespace, Name: s.Config.Name}}
	return func() { r.wake <- event.GenericEvent{Object: config} }
}

// sourceDigest identifies what the data is made from. Without authentication assisted-service's URLs stay the same when the ignition changes, so
// the generations of the InfraEnv and its NMStateConfigs count as well. That the content of the pull secret changed cannot be seen there.
func sourceDigest(infraEnv *aiv1beta1.InfraEnv, networks []*aiv1beta1.NMStateConfig, mode bootmode.Mode, source string) string {
	parts := []string{string(mode.Name())}
	if mode.UserDataFollowsSource() {
		parts = append(parts, source, strconv.FormatInt(infraEnv.Generation, 10))
		for _, network := range networks {
			parts = append(parts, fmt.Sprintf("%s %d", network.Name, network.Generation))
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8])
}

// holds tells whether all wanted entries are there.
func holds(have, wanted map[string]string) bool {
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}

func ownerOf(config *bootstrapv1.OpenshiftAssistedConfig) metav1.OwnerReference {
	return *metav1.NewControllerRef(config, bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfig"))
}

// keepOwner restores owner reference and label, which Cluster API's contract asks for, without touching the data.
func (r *Reconciler) keepOwner(ctx context.Context, s *scope) error {
	if s.DataSecret == nil || s.DataSecret.Annotations[SourceAnnotation] == "" || s.Machine == nil {
		return nil
	}
	if metav1.IsControlledBy(s.DataSecret, s.Config) && s.DataSecret.Labels[clusterv1.ClusterNameLabel] == s.Machine.Spec.ClusterName {
		return nil
	}
	after := s.DataSecret.DeepCopy()
	after.OwnerReferences = []metav1.OwnerReference{ownerOf(s.Config)}
	metav1.SetMetaDataLabel(&after.ObjectMeta, clusterv1.ClusterNameLabel, s.Machine.Spec.ClusterName)
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, after, client.MergeFrom(s.DataSecret))); err != nil {
		return fmt.Errorf("failed to restore the owner of the bootstrap data: %w", err)
	}
	return nil
}

// caBundle is the object that holds the certificate authority of assisted-service.
type caBundle struct {
	kind, name, key string
	// version changes with the content.
	version string
	// missing says that the object does not exist.
	missing string
}

// trustedCA looks for the object without reading its content; nil when the user names none.
func (r *Reconciler) trustedCA(ctx context.Context, s *scope) (*caBundle, error) {
	ref := s.Config.Spec.AssistedServiceCA
	if ref == nil || ref.Name == "" {
		return nil, nil //nolint:nilnil // none is wanted
	}
	ca := &caBundle{kind: ref.Kind, name: ref.Name, key: ref.Key}
	if ca.key == "" {
		ca.key = "ca.crt"
	}
	found, err := kube.Read(ctx, r.Metadata, client.ObjectKey{Namespace: s.Config.Namespace, Name: ref.Name}, kube.MetadataOf(corev1.SchemeGroupVersion.WithKind(ref.Kind)))
	if err != nil {
		return nil, err
	}
	if found == nil {
		ca.missing = fmt.Sprintf("%s %s does not exist: create it with the key %s", ca.kind, ca.name, ca.key)
		return ca, nil
	}
	ca.version = found.ResourceVersion
	return ca, nil
}

// readCA reads the certificates; a missing key yields none.
func (r *Reconciler) readCA(ctx context.Context, namespace string, ca *caBundle) ([]byte, error) {
	if ca == nil {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: namespace, Name: ca.name}
	if ca.kind == "ConfigMap" {
		configMap := &corev1.ConfigMap{}
		if err := r.Live.Get(ctx, key, configMap); err != nil {
			return nil, fmt.Errorf("cannot read ConfigMap %s: %w", ca.name, err)
		}
		return []byte(configMap.Data[ca.key]), nil
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("cannot read Secret %s: %w", ca.name, err)
	}
	return secret.Data[ca.key], nil
}

// metal3Metadata reads what CAPM3 rendered for the host from the Metal3DataTemplate; nil when there is none.
func (r *Reconciler) metal3Metadata(ctx context.Context, s *scope) ([]byte, error) {
	name, _, _ := unstructured.NestedString(s.InfraMachine.Object, "status", "metaData", "name")
	if name == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.InfraMachine.GetNamespace(), Name: name}, secret); err != nil {
		return nil, fmt.Errorf("cannot read the metadata of the host: %w", err)
	}
	return secret.Data["metaData"], nil
}
