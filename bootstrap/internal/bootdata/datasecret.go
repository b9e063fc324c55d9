package bootdata

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// dataSecretTaken reports whether the Secret with the name of the bootstrap data is foreign.
func dataSecretTaken(s *scope.Scope) bool { return s.DataSecret != nil && !Owns(s) }

// Owns reports whether the Secret with the name of the bootstrap data belongs to the config.
func Owns(s *scope.Scope) bool {
	return s.DataSecret != nil && desired.Owns(s.Config, s.DataSecret, desired.SourceAnnotation, s.HandedOut() == s.DataSecret.Name)
}

// applyDataSecret creates the Secret, and writes the Secret again when its source changes.
func (d *Publisher) applyDataSecret(ctx context.Context, s *scope.Scope, mode bootmode.Mode, source string) (bool, error) {
	ca, err := d.trustedCA(ctx, s)
	if err != nil {
		return false, err
	}
	if ca != nil && ca.missing != "" {
		return s.Blockf(bootstrapv1.DataSecretAvailableCondition, bootstrapv1.InvalidConfigurationReason, "spec.assistedServiceCA: %s",
			ca.missing), nil
	}
	digest := sourceDigest(s.InfraEnv, s.Networks, mode, source)
	annotations := map[string]string{desired.SourceAnnotation: digest}
	if id := assisted.InfraEnvIDOfURL(source); id != "" && mode.UserDataFollowsSource() {
		annotations[desired.InfraEnvAnnotation] = id
	}
	if s.DataSecret != nil && writer.ContainsAll(s.DataSecret.Annotations, annotations) {
		return true, d.writer.KeepOwner(ctx, s, s.DataSecret)
	}
	// The cache lacks our last write: do not download the same data twice.
	if last, left := d.digests.Pending(s.Key(), kube.VersionOf(s.DataSecret)); last == digest && left > 0 {
		s.Again.In(left)
		return true, nil
	}
	data, proceed, err := d.userData(ctx, s, mode, source, digest, ca)
	if !proceed || err != nil {
		return false, err
	}
	if data.Modified != "" {
		annotations[desired.ModifiedAnnotation] = data.Modified
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
	if s.DataSecret, err = d.writer.Existing(ctx, s.DataSecret, secret); err != nil {
		return false, err
	}
	if dataSecretTaken(s) {
		s.Again.In(reconcile.CacheLag)
		return waitForDataSecret(s), nil
	}
	if err := d.writer.ApplySecret(ctx, s, secret, s.DataSecret); err != nil {
		return false, fmt.Errorf("cannot write the bootstrap data: %w", err)
	}
	d.digests.Record(s.Key(), digest, cached)
	d.ignitions.Drop(s.Key())
	return true, nil
}

// sourceDigest identifies the source of the data. Without authentication, assisted-service's URLs stay the same
// when the ignition changes, so that the generations of the InfraEnv and its NMStateConfigs count as well. The
// digest does not show that the content of the pull secret changed.
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
