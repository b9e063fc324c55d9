package writer

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// ApplySecret writes a Secret of the config over found, which is nil if no Secret exists. The API server refuses
// the write if another Secret took the place of found meanwhile.
func (w *Writer) ApplySecret(ctx context.Context, s *scope.Scope, wanted *corev1.Secret, found *metav1.PartialObjectMetadata) error {
	if found != nil {
		wanted.UID = found.UID
	}
	return w.writeOwned(s, wanted, found, func() error {
		_, err := w.Applier.Apply(ctx, wanted, nil)
		return err
	})
}

// writeOwned calls write, which writes a Secret of the config over found. If the API server refuses the owner
// references of the Secret, all other fields are written, and a condition reports the refusal.
func (w *Writer) writeOwned(s *scope.Scope, wanted client.Object, found *metav1.PartialObjectMetadata, write func() error) error {
	refused, err := w.WriteOwned(&s.Again, wanted, found, write)
	s.OwnersRefused = cmp.Or(refused, s.OwnersRefused)
	return err
}

// Existing returns the Secret with the name of wanted: from the cache, else from the API server, or nil if neither
// has one. The first write is forced: it would overwrite a foreign Secret that was created a moment ago.
func (w *Writer) Existing(
	ctx context.Context, cached *metav1.PartialObjectMetadata, wanted *corev1.Secret) (*metav1.PartialObjectMetadata, error,
) {
	if cached != nil {
		return cached, nil
	}
	return w.Writer.Existing(ctx, wanted)
}

// KeepOwner restores the owner reference and label of a Secret of ours, as after a restore from a backup, without
// touching its data. Cluster API's contract requires both for the bootstrap data. The Secret is ours: see
// [desired.Owns].
func (w *Writer) KeepOwner(ctx context.Context, s *scope.Scope, secret *metav1.PartialObjectMetadata) error {
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
	err := w.writeOwned(s, after, secret, func() error { return kube.PatchMetadata(ctx, w.Client, secret, after, FieldOwner) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot restore the owner of Secret %s: %w", secret.Name, err)
	}
	return nil
}

// ContainsAll reports whether a map has all wanted entries.
func ContainsAll(have, wanted map[string]string) bool {
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}
