package lab

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/siteconfig"
)

// ApplyClusterInstance renders one of config/siteconfig/samples (without .yaml) like the siteconfig operator,
// and applies the result. It also creates the Secrets of the ClusterInstance and a ClusterImageSet with the
// image of the version. The endpoint of the cluster is its reserved API server, as with samples. The nodes get
// the MAC addresses of their simulated hosts.
func (l *Lab) ApplyClusterInstance(ctx context.Context, sample, version string) (*Cluster, error) {
	folder := filepath.Join(l.samples, "..", "siteconfig")
	templates, err := siteconfigTemplates(folder)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(folder, "samples", sample+sampleSuffix))
	if err != nil {
		return nil, fmt.Errorf("cannot read ClusterInstance %s: %w", sample, err)
	}
	instance, err := siteconfig.Load(content)
	if err != nil {
		return nil, err
	}
	image, err := l.Registry.Publish(version)
	if err != nil {
		return nil, err
	}
	if err := l.prepareFor(ctx, instance, image); err != nil {
		return nil, err
	}
	objects, err := instance.Render(image, templates...)
	if err != nil {
		return nil, err
	}
	c, err := l.NewCluster(types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ClusterName})
	if err != nil {
		return nil, err
	}
	c.ReleaseAPI()
	for _, object := range objects {
		if err := c.mutate(object, Mutations{}); err != nil {
			return nil, err
		}
		if err := l.Apply(ctx, object); err != nil {
			return nil, err
		}
		if object.GetKind() == "BareMetalHost" {
			host := &metal3api.BareMetalHost{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, host); err != nil {
				return nil, fmt.Errorf("BareMetalHost %s: %w", object.GetName(), err)
			}
			c.Hosts = append(c.Hosts, host)
		}
	}
	return c, nil
}

// siteconfigTemplates returns the ConfigMaps with our templates, in the namespace that our samples refer to.
func siteconfigTemplates(folder string) ([]corev1.ConfigMap, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*-templates.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the templates: %w", err)
	}
	templates := make([]corev1.ConfigMap, len(files))
	for i, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the templates: %w", err)
		}
		if err := yaml.UnmarshalStrict(content, &templates[i]); err != nil {
			return nil, fmt.Errorf("cannot read the templates: %w", err)
		}
		templates[i].Namespace = "open-cluster-management"
	}
	return templates, nil
}

// prepareFor creates the objects that a ClusterInstance requires, and gives its nodes the MAC addresses of
// their hosts.
func (l *Lab) prepareFor(ctx context.Context, instance *siteconfig.ClusterInstance, image string) error {
	namespace, spec := instance.Namespace, &instance.Spec
	if err := l.EnsureNamespace(ctx, namespace); err != nil {
		return err
	}
	if err := l.ensureCA(ctx, namespace); err != nil {
		return err
	}
	needed := []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: spec.PullSecretRef.Name},
			Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(PullSecretContent())},
		},
		&hivev1.ClusterImageSet{
			ObjectMeta: metav1.ObjectMeta{Name: spec.ClusterImageSetNameRef},
			Spec:       hivev1.ClusterImageSetSpec{ReleaseImage: image},
		},
	}
	for i := range spec.Nodes {
		node := &spec.Nodes[i]
		node.BootMACAddress = hosts.NewHardware(path.Join(namespace, node.HostName)).NICs[0].MAC
		if node.NodeNetwork != nil {
			node.NodeNetwork.Interfaces[0].MacAddress = node.BootMACAddress
		}
		needed = append(needed, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: node.BmcCredentialsName.Name},
			Data:       map[string][]byte{"username": []byte("admin"), "password": []byte(hosts.BMCPassword)},
		})
	}
	for _, object := range needed {
		if err := l.Client().Create(ctx, object, client.FieldOwner(user)); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("cannot create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}
