package env

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
)

// eventually is the timeout for controllers. CAPM3 retries only after 30 s if it misses a host.
const eventually = 3 * time.Minute

func TestEnv(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first run builds everything
	defer cancel()
	begin := time.Now()

	e, err := Start(ctx, Options{
		Out: t.Output(), LeaveSignals: true,
		Bootstrap: ManagerOptions{Disabled: true}, ControlPlane: ManagerOptions{Disabled: true},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Stop)
	var workload *WorkloadCluster

	t.Run("a workload cluster serves OpenShift's kinds to clients with its kubeconfig", func(t *testing.T) {
		workload = checkWorkloadCluster(ctx, t, e)
	})
	t.Run("all requests to a workload cluster pass through its diversion with the identity of the client", func(t *testing.T) {
		checkDiversion(ctx, t, e)
	})
	t.Run("CAPM3 chooses the available host for a Machine that has its bootstrap data", func(t *testing.T) {
		checkHostIsChosen(ctx, t, e, workload)
	})
	t.Run("an object is deleted with its owner", func(t *testing.T) {
		checkGarbageCollection(ctx, t, e)
	})
	t.Run("an object of a later kind is deleted with its owner", func(t *testing.T) {
		checkGarbageCollectionOfNewKind(ctx, t, e)
	})
	t.Run("a namespace has a ServiceAccount with a valid token, and its deletion deletes its objects", func(t *testing.T) {
		checkNamespace(ctx, t, e)
	})
	t.Run("an aggregated ClusterRole has the rules of the selected ones", func(t *testing.T) {
		checkAggregation(ctx, t, e)
	})
	t.Run("a killed manager can be started again", func(t *testing.T) {
		checkRestart(ctx, t, e)
	})
	t.Run("the audit log has the users and their requests", func(t *testing.T) {
		checkRequests(t, e, begin)
	})
	t.Run("stop leaves no process and no data", func(t *testing.T) {
		checkStop(t, e)
	})
}

func checkWorkloadCluster(ctx context.Context, t *testing.T, e *Env) *WorkloadCluster {
	g := NewWithT(t)
	workload, err := e.ReserveWorkloadCluster("one")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(workload.Start(ctx)).To(Succeed())

	config, err := clientcmd.RESTConfigFromKubeConfig(workload.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Insecure).To(BeFalse())
	c, err := client.New(config, client.Options{Scheme: e.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}})).To(Succeed())
	version := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "11111111-2222-3333-4444-555555555555"},
	}
	g.Expect(c.Create(ctx, version)).To(Succeed())
	g.Expect(c.Create(ctx, &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}})).To(Succeed())

	workload.Stop()
	g.Expect(c.List(ctx, &corev1.NodeList{})).NotTo(Succeed())
	g.Expect(workload.Start(ctx)).To(Succeed())
	g.Expect(c.Get(ctx, client.ObjectKey{Name: "node-0"}, &corev1.Node{})).To(Succeed(), "data must survive a restart")
	return workload
}

func checkHostIsChosen(ctx context.Context, t *testing.T, e *Env, workload *WorkloadCluster) {
	g, c := NewWithT(t), e.Client()
	const namespace, name = "default", "one"
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	clusterLabel := map[string]string{clusterv1.ClusterNameLabel: name}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig", Labels: clusterLabel},
		Type:       clusterv1.ClusterSecretType,
		Data:       map[string][]byte{"value": workload.Kubeconfig()},
	}
	bootstrapData := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-bootstrap", Labels: clusterLabel},
		Type:       clusterv1.ClusterSecretType,
		Data:       map[string][]byte{"value": {}},
	}
	host := &bmov1alpha1.BareMetalHost{
		ObjectMeta: meta,
		Spec:       bmov1alpha1.BareMetalHostSpec{Online: true, BootMACAddress: "52:54:00:00:00:01"},
	}
	infra := clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Name: name}
	cluster := &clusterv1.Cluster{ObjectMeta: meta}
	cluster.Spec.InfrastructureRef = infra
	cluster.Spec.InfrastructureRef.Kind = "Metal3Cluster"
	machine := &clusterv1.Machine{ObjectMeta: meta, Spec: clusterv1.MachineSpec{
		ClusterName: name, InfrastructureRef: infra, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To(bootstrapData.Name)},
	}}
	machine.Spec.InfrastructureRef.Kind = "Metal3Machine"
	for _, object := range []client.Object{
		secret, bootstrapData, host,
		metal3("Metal3Cluster", name,
			map[string]any{"controlPlaneEndpoint": map[string]any{"host": workload.Host, "port": int64(workload.Port)}}),
		cluster,
		metal3("Metal3Machine", name,
			map[string]any{"image": map[string]any{"url": "http://images.example.com/live.iso", "checksum": "", "diskFormat": "live-iso"}}),
		machine,
	} {
		g.Expect(c.Create(ctx, object)).To(Succeed())
	}

	host.Status.Provisioning.State = bmov1alpha1.StateAvailable
	host.Status.OperationalStatus = bmov1alpha1.OperationalStatusOK
	host.Status.ErrorCount, host.Status.PoweredOn = 0, false
	g.Expect(c.Status().Update(ctx, host)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(host), host)).To(Succeed())
		g.Expect(host.Spec.ConsumerRef).NotTo(BeNil())
		g.Expect(host.Spec.ConsumerRef.Kind).To(Equal("Metal3Machine"))
		g.Expect(host.Spec.Image).NotTo(BeNil())
		g.Expect(host.Spec.Image.DiskFormat).To(HaveValue(Equal("live-iso")))
	}, eventually).WithContext(ctx).Should(Succeed())
}

// metal3 returns an object of CAPM3 in the namespace default.
func metal3(kind, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	object.SetKind(kind)
	object.SetNamespace("default")
	object.SetName(name)
	return object
}

func checkGarbageCollection(ctx context.Context, t *testing.T, e *Env) {
	g, c := NewWithT(t), e.Client()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	g.Expect(c.Create(ctx, owner)).To(Succeed())
	expectDeletedWith(ctx, g, e, owner, &bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owned"}})
}

func checkGarbageCollectionOfNewKind(ctx context.Context, t *testing.T, e *Env) {
	g, c := NewWithT(t), e.Client()
	kind := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "latecomers.test.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "test.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "latecomers", Kind: "Latecomer"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
	g.Expect(c.Create(ctx, kind)).To(Succeed())
	object := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("test.example.com/v1")
		o.SetKind("Latecomer")
		o.SetNamespace("default")
		o.SetName(name)
		return o
	}
	owner, owned := object("owner"), object("owned")
	g.Eventually(func() error { return c.Create(ctx, owner) }, eventually).WithContext(ctx).Should(Succeed(), "the kind is served")
	expectDeletedWith(ctx, g, e, owner, owned)
}

// expectDeletedWith creates an object with an existing owner, deletes the owner and waits until the object no
// longer exists.
func expectDeletedWith(ctx context.Context, g Gomega, e *Env, owner, owned client.Object) {
	c := e.Client()
	g.Expect(controllerutil.SetOwnerReference(owner, owned, e.Scheme())).To(Succeed())
	g.Expect(c.Create(ctx, owned)).To(Succeed())
	g.Expect(c.Delete(ctx, owner)).To(Succeed())
	expectDeleted(ctx, g, c, owned)
}

func checkNamespace(ctx context.Context, t *testing.T, e *Env) {
	g, c := NewWithT(t), e.Client()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}
	g.Expect(c.Create(ctx, namespace)).To(Succeed())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}}
	g.Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(account), account) },
		eventually).WithContext(ctx).Should(Succeed())

	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace.Name, Name: "token",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account.Name},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	g.Expect(c.Create(ctx, token)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(token), token)).To(Succeed())
		g.Expect(token.Data).To(HaveKeyWithValue(corev1.ServiceAccountRootCAKey, e.Config().CAData))
		g.Expect(token.Data).To(HaveKey(corev1.ServiceAccountTokenKey))
	}, eventually).WithContext(ctx).Should(Succeed())
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(token.Data[corev1.ServiceAccountTokenKey])}}
	g.Expect(c.Create(ctx, review)).To(Succeed())
	g.Expect(review.Status.User.Username).To(Equal("system:serviceaccount:passing:default"), review.Status.Error)

	g.Expect(c.Delete(ctx, namespace)).To(Succeed())
	expectDeleted(ctx, g, c, namespace)
	expectDeleted(ctx, g, c, token)
}

func checkAggregation(ctx context.Context, t *testing.T, e *Env) {
	g, c := NewWithT(t), e.Client()
	selected := map[string]string{"test.example.com/aggregate": "true"}
	aggregated := &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: "whole"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: selected}}},
	}
	part := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: selected},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"test.example.com"}, Resources: []string{"latecomers"}, Verbs: []string{"get"}}},
	}
	g.Expect(c.Create(ctx, aggregated)).To(Succeed())
	g.Expect(c.Create(ctx, part)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(aggregated), aggregated)).To(Succeed())
		g.Expect(aggregated.Rules).To(Equal(part.Rules))
	}, eventually).WithContext(ctx).Should(Succeed())
}

// expectDeleted waits until an object no longer exists.
func expectDeleted(ctx context.Context, g Gomega, c client.Client, object client.Object) {
	g.Eventually(func() bool {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(object), object))
	}, eventually).WithContext(ctx).Should(BeTrue())
}

func checkRestart(ctx context.Context, t *testing.T, e *Env) {
	g := NewWithT(t)
	manager := e.Manager(Metal3)
	first := manager.PID()
	usage, err := manager.Usage()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(usage.CPU).To(BeNumerically(">", 0))
	g.Expect(usage.PeakMemory).To(BeNumerically(">", 10<<20))

	manager.Kill()
	g.Expect(manager.Running()).To(BeFalse())
	g.Expect(hasExited(first)).To(BeTrue())
	g.Expect(manager.Start(ctx)).To(Succeed())
	g.Expect(manager.PID()).NotTo(Equal(first))
	g.Expect(e.Manager(Bootstrap)).To(BeNil(), "a disabled manager does not exist")
}

func checkRequests(t *testing.T, e *Env, begin time.Time) {
	g := NewWithT(t)
	requests, err := e.Requests(e.Manager(Core).User, begin)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests.Count()).To(HaveKeyWithValue("patch machines", BeNumerically(">", 0)))
	g.Expect(requests.Count()).To(HaveKey("watch machines"))
	g.Expect(requests.Work().Count()).NotTo(HaveKey("watch machines"))
	for _, request := range requests.Where(func(r audit.Request) bool { return r.Resource != "" }) {
		g.Expect(request.Code).NotTo(Equal(403), "%s must be allowed to %s %s", request.User, request.Verb, request.Resource)
	}
	later, err := e.Requests(e.Manager(Core).User, time.Now().Add(time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(later).To(BeEmpty())
}

func checkStop(t *testing.T, e *Env) {
	g := NewWithT(t)
	processes := e.Group().Processes()
	g.Expect(len(processes)).To(BeNumerically(">=", 6))
	begin := time.Now()
	e.Stop()
	t.Logf("stopped in %s", time.Since(begin).Round(time.Millisecond))
	for _, process := range processes {
		g.Expect(process.Running()).To(BeFalse(), process.Name)
		g.Expect(hasExited(process.PID())).To(BeTrue(), process.Name)
		g.Expect(process.LogPath).To(BeARegularFile())
	}
	_, err := os.Stat(e.Group().Temp())
	g.Expect(err).To(MatchError(os.ErrNotExist))
}

// hasExited reports whether a process does not exist.
func hasExited(pid int) bool {
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
