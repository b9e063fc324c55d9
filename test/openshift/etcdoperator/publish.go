package etcdoperator

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// Prefixes of the names of Secrets and Pods, before the name of the Node.
const (
	peerPrefix    = "etcd-peer-"
	servingPrefix = "etcd-serving-"
	metricsPrefix = "etcd-serving-metrics-"

	clientSecret = "etcd-client"
	podPrefix    = "etcd-"
)

// publish writes the objects in the namespace of etcd.
func (o *Operator) publish(ctx context.Context, v *view) error {
	credentials := o.options.Etcd.ClientCredentials()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: named("default")}, // of guard Pods, because no controller creates it
		&corev1.ConfigMap{ObjectMeta: named("etcd-ca-bundle"), Data: map[string]string{"ca-bundle.crt": string(o.options.Etcd.CA())}},
		tlsSecret(clientSecret, credentials),
		&corev1.ConfigMap{ObjectMeta: named("etcd-endpoints"), Data: v.endpoints()},
	}
	for _, object := range objects {
		if err := o.put(ctx, object); err != nil {
			return err
		}
	}
	for i := range v.nodes {
		if err := o.publishNode(ctx, v, &v.nodes[i]); err != nil {
			return err
		}
	}
	if err := o.removePods(ctx, v); err != nil {
		return err
	}
	return o.guard(ctx, v)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

func tlsSecret(name string, c members.Credentials) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: named(name), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: c.Certificate, corev1.TLSPrivateKeyKey: c.Key},
	}
}

// endpoints returns the addresses of voters by member ID, without the bootstrap host.
func (v *view) endpoints() map[string]string {
	data := map[string]string{}
	for _, m := range v.voters() {
		data[strconv.FormatUint(m.ID, 16)] = hostOf(m.PeerURLs)
	}
	return data
}

func hostOf(urls []string) string {
	parsed, err := url.Parse(strings.Join(urls, ","))
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// publishNode creates the missing Secrets of a Node, and its Pod. Existing Secrets of its name stay.
func (o *Operator) publishNode(ctx context.Context, v *view, node *corev1.Node) error {
	for _, prefix := range []string{peerPrefix, servingPrefix, metricsPrefix} {
		if v.secrets[prefix+node.Name] != nil {
			continue
		}
		credentials, err := o.options.Etcd.Issue(node.Name, openshift.InternalIP(node))
		if err != nil {
			return err
		}
		secret := tlsSecret(prefix+node.Name, credentials)
		if err := o.api.Create(ctx, secret); err != nil {
			return fmt.Errorf("cannot create Secret %s: %w", secret.Name, err)
		}
		v.secrets[secret.Name] = secret
	}
	found := v.pods[podPrefix+node.Name]
	if found == nil {
		found = pod(node)
	}
	return o.putPod(ctx, found, node, v.serves(node))
}

// putPod creates a Pod of a Node unless it exists, and writes its status if it changes.
func (o *Operator) putPod(ctx context.Context, p *corev1.Pod, node *corev1.Node, ready bool) error {
	if p.UID == "" {
		if err := o.api.Create(ctx, p); err != nil {
			return fmt.Errorf("cannot create pod %s: %w", p.Name, err)
		}
	}
	before := p.DeepCopy()
	setPodStatus(p, openshift.InternalIP(node), ready)
	if before.Status.Phase == p.Status.Phase && before.Status.PodIP == p.Status.PodIP && openshift.PodReady(before) == ready {
		return nil
	}
	if err := o.api.Status().Patch(ctx, p, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the status of pod %s: %w", p.Name, err)
	}
	return nil
}

// pod returns the mirror of the static Pod on a Node.
func pod(node *corev1.Node) *corev1.Pod {
	const image = "quay.io/openshift-release-dev/ocp-v4.0-art-dev:etcd"
	p := &corev1.Pod{ObjectMeta: named(podPrefix + node.Name)}
	p.Labels = map[string]string{"app": openshift.EtcdApp, "etcd": "true", "k8s-app": "etcd"}
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "static", "kubernetes.io/config.source": "file"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: ptr.To(true)}}
	p.Spec = corev1.PodSpec{
		NodeName: node.Name, HostNetwork: true, PriorityClassName: "system-node-critical",
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{
			{Name: "etcdctl", Image: image},
			{
				Name: "etcd", Image: image,
				Ports: []corev1.ContainerPort{{Name: "etcd", ContainerPort: 2379}, {Name: "etcd-peer", ContainerPort: 2380}},
			},
			{Name: "etcd-readyz", Image: image, Ports: []corev1.ContainerPort{{Name: "readyz", ContainerPort: 9980}}},
		},
	}
	return p
}

func setPodStatus(p *corev1.Pod, address string, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status.Phase, p.Status.PodIP, p.Status.HostIP = corev1.PodRunning, address, address
	p.Status.PodIPs, p.Status.HostIPs = []corev1.PodIP{{IP: address}}, []corev1.HostIP{{IP: address}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}}
}

// removePods removes the Pods of deleted and recreated Nodes.
func (o *Operator) removePods(ctx context.Context, v *view) error {
	for name, found := range v.pods {
		node := v.node(strings.TrimPrefix(name, podPrefix))
		if node != nil && metav1.IsControlledBy(found, node) {
			continue
		}
		if err := o.removePod(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

// removePod deletes a Pod at once: no kubelet completes a deletion with a grace period.
func (o *Operator) removePod(ctx context.Context, p *corev1.Pod) error {
	if err := o.api.Delete(ctx, p, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove pod %s: %w", p.Name, err)
	}
	return nil
}

// put creates or updates an object without its status, unless the same content was written before.
func (o *Operator) put(ctx context.Context, wanted client.Object) error {
	gvk, err := apiutil.GVKForObject(wanted, o.api.Scheme())
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", wanted.GetName(), err)
	}
	return o.written.Once(gvk.Kind+" "+wanted.GetName(), wanted, func() error {
		found := wanted.DeepCopyObject().(client.Object)
		_, err := controllerutil.CreateOrUpdate(ctx, o.api, found, func() error { return overwrite(found, wanted) })
		return err
	})
}

// overwrite sets the data of an object.
func overwrite(found, wanted client.Object) error {
	switch found := found.(type) {
	case *corev1.ConfigMap:
		found.Data = wanted.(*corev1.ConfigMap).Data
	case *corev1.Secret:
		found.Data = wanted.(*corev1.Secret).Data
	}
	return nil
}
