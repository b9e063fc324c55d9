package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/etcdoperator"
)

const (
	// user is the field owner of a user's applies.
	user = "kubectl-client-side-apply"
	// sampleSuffix is the file name suffix of a sample.
	sampleSuffix = ".yaml"

	clusterKind              = "Cluster"
	controlPlaneKind         = "OpenshiftAssistedControlPlane"
	controlPlaneTemplateKind = "OpenshiftAssistedControlPlaneTemplate"
	machineDeploymentKind    = "MachineDeployment"
	infraGroup               = "infrastructure.cluster.x-k8s.io"
	configTemplateKind       = "OpenshiftAssistedConfigTemplate"
	imageSetKind             = "ClusterImageSet"
)

// Forward is middleware that changes nothing.
func Forward(rw http.ResponseWriter, r *http.Request, transport http.RoundTripper, target *url.URL) {
	faultproxy.Forward(transport, target).ServeHTTP(rw, r)
}

// CAConfigMap is the ConfigMap in each namespace with the CA of assisted-service, if it uses HTTPS.
const CAConfigMap = "assisted-service-ca"

// PullSecretPassword is in every pull secret of the lab. In any other place it is a leak.
const PullSecretPassword = "s3cr3t-0f-th3-laboratory"

// PullSecretAuth is the encoded password in a pull secret.
var PullSecretAuth = base64.StdEncoding.EncodeToString([]byte("lab:" + PullSecretPassword))

// Mutations are changes of a sample before it is applied.
type Mutations struct {
	// Namespace to apply the sample to, created if it does not exist. Default: lab.
	Namespace string
	// ClusterName replaces the name of the sample, also as prefix of other names. Default: the name of the
	// sample.
	ClusterName string
	// ExtraHosts are BareMetalHosts in addition to those that the sample needs. Negative: fewer.
	ExtraHosts int
	// HostOptions change the BareMetalHosts.
	HostOptions []hosts.HostOption
	// Without leaves objects out; [Cluster.ApplyRest] applies them later.
	Without func(*unstructured.Unstructured) bool
	// HoldAPI blocks the start of the cluster's API, and so the end of the installation, until
	// [Cluster.ReleaseAPI].
	HoldAPI bool
	// LightAPI serves the API of the cluster in this process instead of a kube-apiserver, with the limits of
	// package lightapi.
	LightAPI bool
	// Divert is middleware between the API of the cluster and all clients of its kubeconfig or endpoint; nil:
	// none. With middleware, such as [Forward], and with LightAPI the API server reports the version of
	// Kubernetes of its release. A kube-apiserver without middleware reports its own.
	Divert env.Pass
	// Audit records the requests to the API of the cluster: see [env.WorkloadCluster.Requests]. LightAPI always
	// records them.
	Audit bool
	// EtcdMembers gives the cluster its own etcd with a member on each control-plane Node, see [Cluster.Etcd].
	// It requires a control plane of at least three hosts and excludes LightAPI.
	EtcdMembers bool
	// EtcdRestart is the downtime of the etcd container of a Node whose member was removed while its host runs.
	// Default: 10 s.
	EtcdRestart time.Duration
	// OwnRepository pushes the release of the cluster to a separate repository that was never queried before:
	// see [Registry].
	OwnRepository bool
	// Edit changes an object after all other mutations.
	Edit func(*unstructured.Unstructured)
}

// ApplySample applies one of config/samples (without .yaml) with the hosts that it needs. The endpoint of the
// cluster is its reserved API server. Other changes concern only names and the contents of the pull secret.
func (l *Lab) ApplySample(ctx context.Context, sample string, mutations Mutations) (*Cluster, error) {
	if mutations.Namespace == "" {
		mutations.Namespace = "lab"
	}
	if mutations.ClusterName == "" {
		mutations.ClusterName = sample
	}
	objects, err := l.readSample(sample)
	if err != nil {
		return nil, err
	}
	return l.applyObjects(ctx, sample, objects, mutations)
}

// ApplyManifests applies manifests from another source, for example clusterctl. [Mutations.Namespace] and
// [Mutations.ClusterName] name the cluster. It creates the needed hosts and sets the endpoint like ApplySample,
// but changes no name.
func (l *Lab) ApplyManifests(ctx context.Context, manifests []byte, mutations Mutations) (*Cluster, error) {
	objects, err := decode(manifests)
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests of %s: %w", mutations.ClusterName, err)
	}
	return l.applyObjects(ctx, mutations.ClusterName, objects, mutations)
}

// applyObjects applies objects with the names of the sample.
func (l *Lab) applyObjects(ctx context.Context, name string, objects manifests, mutations Mutations) (*Cluster, error) {
	if err := mutations.validate(objects); err != nil {
		return nil, fmt.Errorf("cannot apply sample %s: %w", name, err)
	}
	if err := l.EnsureNamespace(ctx, mutations.Namespace); err != nil {
		return nil, err
	}
	if err := l.ensureCA(ctx, mutations.Namespace); err != nil {
		return nil, err
	}
	c, err := l.newCluster(types.NamespacedName{Namespace: mutations.Namespace, Name: mutations.ClusterName}, mutations.LightAPI)
	if err != nil {
		return nil, err
	}
	if mutations.Divert != nil {
		if err := c.Server().Divert(mutations.Divert); err != nil {
			return nil, err
		}
	}
	if mutations.Audit && !mutations.LightAPI {
		if _, err := c.Server().Audit(); err != nil {
			return nil, err
		}
	}
	if mutations.EtcdMembers {
		if err := c.UseEtcdMembers(ctx, etcdoperator.Options{Restart: mutations.EtcdRestart}); err != nil {
			return nil, err
		}
	}
	c.Sample = name
	if !mutations.HoldAPI {
		c.ReleaseAPI()
	}
	needs, wanted := objects.needs(), 0 // of the unchanged sample: an edit may be an intended mistake
	for _, object := range objects {
		if err := c.mutate(object, mutations); err != nil {
			return nil, err
		}
		wanted += machinesOf(object)
	}
	own, err := objects.hosts(needs)
	if err != nil {
		return nil, err
	}
	options := append([]hosts.HostOption{hosts.WithName(c.Name), withNeeds(needs)}, mutations.HostOptions...)
	if c.Hosts, err = hosts.NewBareMetalHosts(ctx, l.Client(), c.Namespace, wanted-len(own)+mutations.ExtraHosts, options...); err != nil {
		return nil, err
	}
	c.Hosts = append(c.Hosts, own...)
	if err := l.supplyManifests(ctx, c.Namespace, objects); err != nil {
		return nil, err
	}
	for _, object := range objects {
		if mutations.Without != nil && mutations.Without(object) {
			c.rest = append(c.rest, object)
			continue
		}
		if err := l.Apply(ctx, object); err != nil {
			return nil, err
		}
		c.applied = append(c.applied, object)
	}
	return c, nil
}

// validate returns an error for mutations that a sample does not support.
func (m Mutations) validate(objects []*unstructured.Unstructured) error {
	if !m.EtcdMembers {
		return nil
	}
	if m.LightAPI {
		return errors.New("EtcdMembers and LightAPI exclude each other: an API that this process serves keeps its data in no etcd")
	}
	for _, object := range objects {
		if n := controlPlanesOf(object); n > 0 && n < 3 {
			return fmt.Errorf("EtcdMembers needs at least three control-plane hosts, not %d: the member of the bootstrap host would remain", n)
		}
	}
	return nil
}

// Apply creates or changes an object like "kubectl apply --server-side".
func (l *Lab) Apply(ctx context.Context, object *unstructured.Unstructured) error {
	err := l.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner(user), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("cannot apply %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// EnsureNamespace creates a namespace unless it exists.
func (l *Lab) EnsureNamespace(ctx context.Context, name string) error {
	err := l.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create namespace %s: %w", name, err)
	}
	return nil
}

// ensureCA creates the ConfigMap that the samples refer to.
func (l *Lab) ensureCA(ctx context.Context, namespace string) error {
	if len(l.ca) == 0 {
		return nil
	}
	authority := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: CAConfigMap}, Data: map[string]string{"ca.crt": string(l.ca)},
	}
	err := l.Client().Create(ctx, authority)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create the ConfigMap with the authority of assisted-service: %w", err)
	}
	return nil
}

// supplyManifests creates the ConfigMaps with manifests that a sample leaves to its user, for example those of
// a network plug-in.
func (l *Lab) supplyManifests(ctx context.Context, namespace string, objects manifests) error {
	for _, object := range objects {
		refs, _ := field(object, "spec", "config", "manifestsConfigMapRefs").([]any)
		for _, ref := range refs {
			named, _ := ref.(map[string]any)["name"].(string)
			if objects.field("ConfigMap", named, "metadata") != nil {
				continue
			}
			manifest := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n", named)
			err := l.Client().Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: named}, Data: map[string]string{named + ".yaml": manifest},
			}, client.FieldOwner(user))
			if client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("cannot create ConfigMap %s: %w", named, err)
			}
		}
	}
	return nil
}

// Samples returns the names of all samples.
func (l *Lab) Samples() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(l.samples, "*"+sampleSuffix))
	if err != nil {
		return nil, fmt.Errorf("cannot list the samples: %w", err)
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), sampleSuffix))
	}
	return names, nil
}

// readSample returns the objects of a sample in the order of the file.
func (l *Lab) readSample(name string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(filepath.Join(l.samples, name+sampleSuffix))
	if err != nil {
		return nil, fmt.Errorf("cannot read sample %s: %w", name, err)
	}
	objects, err := decode(content)
	if err != nil {
		return nil, fmt.Errorf("cannot read sample %s: %w", name, err)
	}
	return objects, nil
}

// decode returns the objects of a stream of YAML documents, in their order.
func decode(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		var fields map[string]any
		if err := utilyaml.Unmarshal(document, &fields); err != nil { // keeps integers
			return nil, err
		}
		if len(fields) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: fields})
		}
	}
}

// publishSamples pushes the releases of all samples.
func (l *Lab) publishSamples() error {
	samples, err := l.Samples()
	if err != nil {
		return err
	}
	for _, sample := range samples {
		objects, err := l.readSample(sample)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := l.publish(object); err != nil {
				return err
			}
		}
	}
	return nil
}

// publish pushes the release of an object of a sample, if any. The images of ClusterImageSets are in other
// registries.
func (l *Lab) publish(object *unstructured.Unstructured) error {
	var wanted release
	switch object.GetKind() {
	case imageSetKind:
		image, _ := field(object, "spec", "releaseImage").(string)
		_, tag, _ := strings.Cut(image, ":")
		dash := strings.LastIndex(tag, "-")
		return l.Registry.recordRelease(image, release{tag[:max(dash, 0)], tag[dash+1:]})
	case controlPlaneKind:
		wanted = releaseOf(object)
	case clusterKind:
		version, _ := topologyVariable(object.Object, "distributionVersion").(string)
		wanted = release{version, tagArchitecture("")}
	}
	if wanted.version == "" {
		return nil
	}
	_, err := l.Registry.publishFor(wanted.version, wanted.architecture)
	return err
}

// mutate adapts an object of the sample to this cluster.
func (c *Cluster) mutate(object *unstructured.Unstructured, mutations Mutations) error {
	object.Object = rename(object.Object, c.Sample, c.Name).(map[string]any) //nolint:forcetypeassert // rename keeps the type
	if object.GetKind() != imageSetKind {                                    // cluster-scoped
		object.SetNamespace(c.Namespace)
	}
	// The test uses this endpoint instead of DNS and the VIP.
	endpoint := map[string]any{"host": c.workload.server.Host, "port": int64(c.workload.server.Port)}
	// of any infrastructure provider
	if object.GroupVersionKind().Group == infraGroup && strings.HasSuffix(object.GetKind(), clusterKind) {
		set(object, endpoint, "spec", "controlPlaneEndpoint")
	}
	switch object.GetKind() {
	case clusterKind:
		setVariable(object, "controlPlaneEndpoint", endpoint)
	case "Secret":
		if text, _ := field(object, "stringData", corev1.DockerConfigJsonKey).(string); text != "" && !strings.Contains(text, mirrorName) {
			set(object, map[string]any{corev1.DockerConfigJsonKey: PullSecretContent()}, "stringData")
		}
	}
	if err := c.connect(object.Object); err != nil {
		return err
	}
	if len(c.lab.ca) > 0 {
		reference := map[string]any{"kind": "ConfigMap", "name": CAConfigMap}
		switch object.GetKind() {
		case controlPlaneKind:
			set(object, reference, "spec", "openshiftAssistedConfigSpec", "assistedServiceCA")
		case controlPlaneTemplateKind:
			set(object, reference, "spec", "template", "spec", "openshiftAssistedConfigSpec", "assistedServiceCA")
		case configTemplateKind:
			set(object, reference, "spec", "template", "spec", "assistedServiceCA")
		}
	}
	if mutations.OwnRepository && object.GetKind() == controlPlaneKind {
		if err := c.lab.Registry.publishSeparately(object); err != nil {
			return err
		}
	}
	if mutations.Edit != nil {
		mutations.Edit(object)
	}
	return nil
}

// PullSecretContent returns a pull secret for every registry that a sample may use.
func PullSecretContent() string {
	return fmt.Sprintf(`{"auths":{"registry.example.com":{"auth":%q},"quay.io":{"auth":%q}}}`, PullSecretAuth, PullSecretAuth)
}

func set(object *unstructured.Unstructured, value any, fields ...string) {
	if err := unstructured.SetNestedField(object.Object, value, fields...); err != nil {
		// The path contains a field that is not a map: the sample is invalid.
		panic(fmt.Sprintf("%s %s: %v", object.GetKind(), object.GetName(), err))
	}
}

// topologyVariable returns the value of a variable of a topology; nil if it has none.
func topologyVariable(cluster map[string]any, name string) any {
	variables, _, _ := unstructured.NestedSlice(cluster, "spec", "topology", "variables")
	for _, variable := range variables {
		if v, ok := variable.(map[string]any); ok && v["name"] == name {
			return v["value"]
		}
	}
	return nil
}

// setVariable sets the variable of a topology. A Cluster without the variable is unchanged.
func setVariable(cluster *unstructured.Unstructured, name string, value any) {
	variables, found, _ := unstructured.NestedSlice(cluster.Object, "spec", "topology", "variables")
	if !found {
		return
	}
	for _, variable := range variables {
		if v, ok := variable.(map[string]any); ok && v["name"] == name {
			v["value"] = value
		}
	}
	set(cluster, variables, "spec", "topology", "variables")
}

// rename replaces the name of a sample in every string that equals the name or begins with the name and a dash.
func rename(value any, from, to string) any {
	switch v := value.(type) {
	case string:
		if rest, found := strings.CutPrefix(v, from); found && (rest == "" || strings.HasPrefix(rest, "-")) {
			return to + rest
		}
	case []any:
		for i := range v {
			v[i] = rename(v[i], from, to)
		}
	case map[string]any:
		for key := range v {
			v[key] = rename(v[key], from, to)
		}
	}
	return value
}

// machinesOf returns the number of Machines of an object.
func machinesOf(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case clusterKind:
		cluster := &clusterv1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, cluster); err != nil {
			panic(fmt.Sprintf("Cluster %s: %v", object.GetName(), err)) // as in set
		}
		return machinesOfTopology(cluster.Spec.Topology)
	case controlPlaneKind, machineDeploymentKind:
		replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
		if !found || err != nil {
			return 1
		}
		return int(replicas)
	}
	return 0
}

// controlPlanesOf returns the number of control-plane Machines of an object; 0 for other kinds.
func controlPlanesOf(object *unstructured.Unstructured) int64 {
	fields := map[string][]string{
		controlPlaneKind: {"spec", "replicas"},
		clusterKind:      {"spec", "topology", "controlPlane", "replicas"},
	}[object.GetKind()]
	if fields == nil || object.GetKind() == clusterKind && machinesOf(object) == 0 {
		return 0
	}
	replicas, found, err := unstructured.NestedInt64(object.Object, fields...)
	if !found || err != nil {
		return 1
	}
	return replicas
}

// machinesOfTopology returns the number of Machines of a topology; 0 without topology.
func machinesOfTopology(topology clusterv1.Topology) int {
	if !topology.IsDefined() {
		return 0
	}
	wanted := orOne(topology.ControlPlane.Replicas)
	for _, deployment := range topology.Workers.MachineDeployments {
		wanted += orOne(deployment.Replicas)
	}
	return int(wanted)
}
