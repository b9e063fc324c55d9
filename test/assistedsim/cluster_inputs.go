package assistedsim

import (
	"context"
	"encoding/json"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of the ConfigMap with registry mirrors.
const (
	registriesKey = "registries.conf"
	bundleKey     = "ca-bundle.crt"
)

// The service labels every Secret and ConfigMap that it uses, because its cache contains no others.
var usedLabels = map[string]string{
	"agent-install.openshift.io/watch":          "true",
	"cluster.open-cluster-management.io/backup": "true",
}

// checkInputs checks all objects that a cluster refers to before its installation.
func (s *Simulator) checkInputs(ctx context.Context, cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall) error {
	if cd.Spec.PullSecretRef == nil {
		return inputErrorf("missing reference to pull secret")
	}
	if err := s.checkImport(ctx, cd, aci); err != nil {
		return err
	}
	if aci.Spec.ImageSetRef == nil {
		return inputErrorf("missing reference to ClusterImageSet")
	}
	if _, err := s.mirrors(ctx, aci.Spec.MirrorRegistryRef); err != nil {
		return err
	}
	return s.checkManifests(ctx, aci)
}

// mirrors reads the ConfigMap with the registry mirrors; nil without a reference.
func (s *Simulator) mirrors(ctx context.Context, ref *hiveext.MirrorRegistryConfigMapReference) (map[string]string, error) {
	if ref == nil {
		return nil, nil
	}
	mirrors := &corev1.ConfigMap{}
	if err := s.live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, mirrors); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, inputErrorf("Failed to get referenced ConfigMap: configmaps %q not found", ref.Name)
		}
		return nil, fmt.Errorf("failed to get ConfigMap %s: %w", ref.Name, err)
	}
	if err := s.labelUsed(ctx, mirrors); err != nil {
		return nil, err
	}
	if mirrors.Data[registriesKey] == "" {
		return nil, inputErrorf("ConfigMap %s/%s does not contain %s key", ref.Namespace, ref.Name, registriesKey)
	}
	return mirrors.Data, nil
}

// releaseImage returns the image of the ClusterImageSet, or "" without one.
func (s *Simulator) releaseImage(ctx context.Context, aci *hiveext.AgentClusterInstall) (string, error) {
	if aci.Spec.ImageSetRef == nil {
		return "", nil
	}
	imageSet := &hivev1.ClusterImageSet{}
	err := s.live.Get(ctx, types.NamespacedName{Name: aci.Spec.ImageSetRef.Name}, imageSet)
	return imageSet.Spec.ReleaseImage, client.IgnoreNotFound(err)
}

// checkImport checks the references that an imported cluster has; all of them are optional.
func (s *Simulator) checkImport(ctx context.Context, cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall) error {
	if cd.Spec.PullSecretRef != nil {
		if _, err := s.pullSecret(ctx, cd.Namespace, cd.Spec.PullSecretRef.Name); err != nil {
			return err
		}
	}
	if aci.Spec.ImageSetRef == nil {
		return nil
	}
	imageSet := &hivev1.ClusterImageSet{}
	if err := s.live.Get(ctx, types.NamespacedName{Name: aci.Spec.ImageSetRef.Name}, imageSet); err != nil {
		if apierrors.IsNotFound(err) {
			return inputErrorf("failed to get cluster image set %s: clusterimagesets.hive.openshift.io %q not found",
				aci.Spec.ImageSetRef.Name, aci.Spec.ImageSetRef.Name)
		}
		return fmt.Errorf("failed to get cluster image set %s: %w", aci.Spec.ImageSetRef.Name, err)
	}
	return nil
}

// checkManifests reads the extra manifests. A file name must be unique across all ConfigMaps.
func (s *Simulator) checkManifests(ctx context.Context, aci *hiveext.AgentClusterInstall) error {
	names := manifestNames(aci)
	seen := map[string]string{}
	for _, name := range names {
		manifests := &corev1.ConfigMap{}
		if err := s.live.Get(ctx, types.NamespacedName{Namespace: aci.Namespace, Name: name}, manifests); err != nil {
			if apierrors.IsNotFound(err) {
				return inputErrorf("failed to find configMap %s: configmaps %q not found", name, name)
			}
			return fmt.Errorf("failed to get configMap %s: %w", name, err)
		}
		if err := s.labelUsed(ctx, manifests); err != nil {
			return err
		}
		for file := range manifests.Data {
			if other, twice := seen[file]; twice {
				return inputErrorf("duplicate manifest %s in configMaps %s and %s", file, other, name)
			}
			seen[file] = name
		}
	}
	return nil
}

func manifestNames(aci *hiveext.AgentClusterInstall) []string {
	var names []string
	for _, ref := range aci.Spec.ManifestsConfigMapRefs {
		names = append(names, ref.Name)
	}
	if ref := aci.Spec.ManifestsConfigMapRef; ref != nil {
		names = append(names, ref.Name)
	}
	return names
}

// pullSecret reads, checks and labels a pull secret. Errors name the Secret, never its content.
func (s *Simulator) pullSecret(ctx context.Context, namespace, name string) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := s.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, inputErrorf("failed to find secret %s: secrets %q not found", name, name)
		}
		return nil, fmt.Errorf("failed to get secret %s: %w", name, err)
	}
	if err := s.labelUsed(ctx, secret); err != nil {
		return nil, err
	}
	data, ok := secret.Data[corev1.DockerConfigJsonKey]
	if !ok {
		return nil, inputErrorf("secret %s did not contain key %s", name, corev1.DockerConfigJsonKey)
	}
	var content struct {
		Auths map[string]struct {
			Auth string `json:"auth"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, inputErrorf("pull secret must be a well-formed JSON")
	}
	if len(content.Auths) == 0 {
		return nil, inputErrorf("pull secret must contain 'auths' JSON-object field")
	}
	for registry, entry := range content.Auths {
		if entry.Auth == "" {
			return nil, inputErrorf("invalid pull secret: %q JSON-object requires 'auth' field", registry)
		}
	}
	return data, nil
}

func (s *Simulator) labelUsed(ctx context.Context, obj client.Object) error {
	missing := false
	for key, value := range usedLabels {
		missing = missing || obj.GetLabels()[key] != value
	}
	if !missing {
		return nil
	}
	base, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("cannot copy %s", obj.GetName())
	}
	labels := obj.GetLabels()
	merge(&labels, usedLabels)
	obj.SetLabels(labels)
	if err := s.client.Patch(ctx, obj, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("cannot label %s: %w", obj.GetName(), err)
	}
	return nil
}
