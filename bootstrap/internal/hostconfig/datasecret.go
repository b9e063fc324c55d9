package hostconfig

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// SourceAnnotation marks a bootstrap data Secret as ours. Its value is a digest of the source of the data.
const SourceAnnotation = "bootstrap.cluster.x-k8s.io/discovery-source"

// ModifiedAnnotation records, on a bootstrap data Secret, when assisted-service last changed the source of the
// data.
const ModifiedAnnotation = "bootstrap.cluster.x-k8s.io/discovery-modified"

// InfraEnvAnnotation records, on a bootstrap data Secret, the InfraEnv of the data, by the ID that
// assisted-service gave to the InfraEnv.
const InfraEnvAnnotation = "bootstrap.cluster.x-k8s.io/discovery-infraenv"

// dataSecretTaken reports whether the Secret with the name of the bootstrap data is foreign.
func dataSecretTaken(s *scope.Scope) bool { return s.DataSecret != nil && !ownsData(s) }

// ownsData reports whether the Secret with the name of the bootstrap data belongs to the config.
func ownsData(s *scope.Scope) bool {
	return s.DataSecret != nil && desired.Owns(s.Config, s.DataSecret, SourceAnnotation, s.HandedOut() == s.DataSecret.Name)
}

// applyDataSecret creates the Secret, and writes the Secret again when its source changes.
func (r *Reconciler) applyDataSecret(ctx context.Context, s *scope.Scope, mode bootmode.Mode, source string) (bool, error) {
	ca, err := r.trustedCA(ctx, s)
	if err != nil {
		return false, err
	}
	if ca != nil && ca.missing != "" {
		return s.Wait(bootstrapv1.DataSecretAvailableCondition, bootstrapv1.InvalidConfigurationReason, "spec.assistedServiceCA: %s", ca.missing)
	}
	digest := sourceDigest(s.InfraEnv, s.Networks, mode, source)
	annotations := map[string]string{SourceAnnotation: digest}
	if id := assisted.InfraEnvIDOfURL(source); id != "" && mode.UserDataFollowsSource() {
		annotations[InfraEnvAnnotation] = id
	}
	if s.DataSecret != nil && containsAll(s.DataSecret.Annotations, annotations) {
		return true, r.keepOwner(ctx, s, s.DataSecret)
	}
	// The cache lacks our last write: do not download the same data twice.
	if last, left := r.data.Pending(s.Key(), kube.VersionOf(s.DataSecret)); last == digest && left > 0 {
		s.Again.In(left)
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
			OwnerReferences: []metav1.OwnerReference{desired.OwnerOf(s.Config)},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": data.Value, "format": []byte("ignition")},
	}
	cached := kube.VersionOf(s.DataSecret)
	if s.DataSecret, err = r.existing(ctx, s.DataSecret, secret); err != nil {
		return false, err
	}
	if dataSecretTaken(s) {
		s.Again.In(reconcile.CacheLag)
		return waitForDataSecret(s)
	}
	if err := r.applySecret(ctx, s, secret, s.DataSecret); err != nil {
		return false, fmt.Errorf("cannot write the bootstrap data: %w", err)
	}
	r.data.Record(s.Key(), digest, cached)
	r.ignitions.Drop(s.Key())
	return true, nil
}

// applySecret writes a Secret of the config over found, which is nil if no Secret exists. The API server refuses
// the write if another Secret took the place of found meanwhile.
func (r *Reconciler) applySecret(ctx context.Context, s *scope.Scope, wanted *corev1.Secret, found *metav1.PartialObjectMetadata) error {
	if found != nil {
		wanted.UID = found.UID
	}
	return r.writeOwned(s, wanted, found, func() error {
		_, err := r.applier.Apply(ctx, wanted, nil)
		return err
	})
}

// writeOwned calls write, which writes a Secret of the config over found. If the API server refuses the owner
// references of the Secret, all other fields are written, and a condition reports the refusal.
func (r *Reconciler) writeOwned(s *scope.Scope, wanted client.Object, found *metav1.PartialObjectMetadata, write func() error) error {
	refused, err := r.owners.Write(wanted, found, write)
	if refused > 0 {
		s.Again.In(refused)
		s.OwnersRefused = reconcile.OwnersRefusedMessage("Secret", found.Name, reconcile.HubRights)
	}
	return err
}

// existing returns the Secret with the name of wanted: from the cache, else from the API server, or nil if neither
// has one. The first write is forced: it would overwrite a foreign Secret that was created a moment ago.
func (r *Reconciler) existing(ctx context.Context, cached *metav1.PartialObjectMetadata, wanted *corev1.Secret) (*metav1.PartialObjectMetadata, error) {
	if cached != nil {
		return cached, nil
	}
	return kube.Read(ctx, r.Live, client.ObjectKeyFromObject(wanted), kube.MetadataOf(kube.Secret))
}

// sourceDigest identifies the source of the data. Without authentication, assisted-service's URLs stay the same
// when the ignition changes, so that the generations of the InfraEnv and its NMStateConfigs count as well. The
// digest does not show that the content of the pull secret changed.
func sourceDigest(infraEnv *assisted.InfraEnv, networks []*aiv1beta1.NMStateConfig, mode bootmode.Mode, source string) string {
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

// containsAll reports whether a map has all wanted entries.
func containsAll(have, wanted map[string]string) bool {
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}

// keepOwner restores the owner reference and label of a Secret of ours, as after a restore from a backup, without
// touching its data. Cluster API's contract requires both for the bootstrap data. The Secret is ours: see
// [desired.Owns].
func (r *Reconciler) keepOwner(ctx context.Context, s *scope.Scope, secret *metav1.PartialObjectMetadata) error {
	if s.Machine == nil {
		return nil
	}
	if metav1.IsControlledBy(secret, s.Config) && secret.Labels[clusterv1.ClusterNameLabel] == s.Machine.Spec.ClusterName {
		return nil
	}
	after := secret.DeepCopy()
	after.OwnerReferences = []metav1.OwnerReference{desired.OwnerOf(s.Config)}
	metav1.SetMetaDataLabel(&after.ObjectMeta, clusterv1.ClusterNameLabel, s.Machine.Spec.ClusterName)
	// Patch the Secret only as it was read: a Secret that took its place meanwhile is foreign.
	err := r.writeOwned(s, after, secret, func() error { return kube.PatchMetadata(ctx, r.Client, secret, after, FieldOwner) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot restore the owner of Secret %s: %w", secret.Name, err)
	}
	return nil
}
