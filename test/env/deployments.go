package env

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
)

// deploymentsInterval is the interval of reconciles of the Deployments, similar to that of a kubelet.
const deploymentsInterval = 500 * time.Millisecond

// Image replaces a container image: it is a built program.
type Image struct {
	// Name is the name of the process and of its log.
	Name string
	// Program is the path of the program.
	Program string
	// ExtraArgs follow the arguments of the Deployment and of the environment, see [ManagerOptions.ExtraArgs].
	ExtraArgs []string
}

// Deployments runs the managers of Deployments that another client creates, changes and deletes, for example clusterctl.
// The environment has [Options.NoManagers]. It simulates components of a cluster that an API server alone lacks:
//   - Deployment controller and kubelet. The container of each Deployment is a process while the Deployment has a
//     replica. The process has the ServiceAccount, arguments and variables of the Deployment, and those of the
//     environment. The status of the Deployment reports the process.
//   - The network of Services, and the certificates and CA injection of cert-manager. Webhooks and conversions that
//     refer to the Service of a manager are redirected to its process.
//
// All other objects stay as installed.
type Deployments struct {
	env    *Env
	images map[string]Image
	end    context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	running map[types.UID]*manager
	failure error
}

// RunDeployments runs Deployments of these images, by their names with tag, until it is stopped or the environment is.
func (e *Env) RunDeployments(images map[string]Image) *Deployments {
	d := &Deployments{env: e, images: images, done: make(chan struct{}), running: map[types.UID]*manager{}}
	ctx, cancel := e.group.Bound(context.Background())
	d.end = cancel
	go func() {
		defer close(d.done)
		tick := time.NewTicker(deploymentsInterval)
		defer tick.Stop()
		for {
			if err := d.reconcile(ctx); err != nil && ctx.Err() == nil {
				d.fail(err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return d
}

// Stop ends the reconciles of Deployments. The processes end with the environment.
func (d *Deployments) Stop() {
	d.end()
	<-d.done
}

// Process returns the running manager with a name, or nil.
func (d *Deployments) Process(name string) *process.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.running {
		if m.name == name {
			return m.process
		}
	}
	return nil
}

// Failure returns the error that ended the reconciles, or nil.
func (d *Deployments) Failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failure
}

func (d *Deployments) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
}

// reconcile compares the running processes with the Deployments.
func (d *Deployments) reconcile(ctx context.Context) error {
	list := &appsv1.DeploymentList{}
	if err := d.env.client.List(ctx, list); err != nil {
		return fmt.Errorf("cannot list the Deployments: %w", err)
	}
	d.stopUnwanted(list.Items)
	for i := range list.Items {
		if err := d.serve(ctx, &list.Items[i]); err != nil && !isOutdated(err) {
			return fmt.Errorf("cannot run Deployment %s: %w", client.ObjectKeyFromObject(&list.Items[i]), err)
		}
	}
	return d.redirectWebhooks(ctx)
}

// isOutdated reports whether an error comes from a change or deletion since the list of Deployments. The next
// reconcile handles it.
func isOutdated(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

func wantsReplica(deployment *appsv1.Deployment) bool {
	return deployment.DeletionTimestamp.IsZero() && (deployment.Spec.Replicas == nil || *deployment.Spec.Replicas > 0)
}

// stopUnwanted stops processes without Deployment and processes of an earlier version of their Deployment.
func (d *Deployments) stopUnwanted(wanted []appsv1.Deployment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for uid, m := range d.running {
		if slices.ContainsFunc(wanted, func(w appsv1.Deployment) bool {
			return w.UID == uid && w.Generation == m.deployment.Generation && wantsReplica(&w)
		}) {
			continue
		}
		m.process.Stop()
		delete(d.running, uid)
	}
}

// serve runs the Deployment unless it runs, and updates its status.
func (d *Deployments) serve(ctx context.Context, deployment *appsv1.Deployment) error {
	if wantsReplica(deployment) && !d.runs(deployment.UID) {
		m, err := d.load(ctx, deployment)
		if err != nil {
			return err
		}
		if err := m.start(ctx, d.env); err != nil {
			return err
		}
		d.mu.Lock()
		d.running[deployment.UID] = m
		d.mu.Unlock()
	}
	return d.report(ctx, deployment)
}

func (d *Deployments) runs(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running[uid] != nil
}

// load prepares the process of a Deployment, and redirects conversions to it: CRDs are installed before
// Deployments.
func (d *Deployments) load(ctx context.Context, deployment *appsv1.Deployment) (*manager, error) {
	containers := deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		return nil, fmt.Errorf("%d containers, not one", len(containers))
	}
	image, known := d.images[containers[0].Image]
	if !known {
		return nil, fmt.Errorf("unknown image %s", containers[0].Image)
	}
	m := &manager{
		name: image.Name, options: ManagerOptions{ExtraArgs: image.ExtraArgs}, deployment: deployment.DeepCopy(),
		configMaps: map[string]*corev1.ConfigMap{},
		program:    func(context.Context) (string, error) { return image.Program, nil },
	}
	configMaps := &corev1.ConfigMapList{}
	if err := d.env.client.List(ctx, configMaps, client.InNamespace(deployment.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the ConfigMaps: %w", err)
	}
	for i := range configMaps.Items {
		m.configMaps[configMaps.Items[i].Name] = &configMaps.Items[i]
	}
	roles, err := d.list(ctx, rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	if err != nil {
		return nil, err
	}
	definitions, err := d.list(ctx, apiextensionsv1.SchemeGroupVersion.WithKind(crdKind))
	if err != nil {
		return nil, err
	}
	m.objects = slices.Concat(roles, slices.DeleteFunc(definitions, func(o *unstructured.Unstructured) bool {
		return !slices.Contains(calledNamespaces(o), deployment.Namespace)
	}))
	if err := m.prepare(ctx, d.env); err != nil {
		return nil, err
	}
	for _, object := range m.objects {
		if hasWebhook(object) {
			if err := d.env.client.Update(ctx, object); err != nil {
				return nil, fmt.Errorf("cannot redirect the conversion of %s to its manager: %w", object.GetName(), err)
			}
		}
	}
	return m, nil
}

// list returns all objects of a kind.
func (d *Deployments) list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := d.env.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", kind.Kind, err)
	}
	found := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	return found, nil
}

// calledNamespaces returns the namespaces of the Services by which an object refers to a manager.
func calledNamespaces(object *unstructured.Unstructured) []string {
	namespace, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "webhook", "clientConfig", "service", "namespace")
	namespaces := []string{namespace}
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, webhook := range webhooks {
		if fields, ok := webhook.(map[string]any); ok {
			namespace, _, _ := unstructured.NestedString(fields, "clientConfig", "service", "namespace")
			namespaces = append(namespaces, namespace)
		}
	}
	return slices.DeleteFunc(namespaces, func(name string) bool { return name == "" })
}

// redirectWebhooks redirects webhooks to the running processes. Webhooks may be installed after the Deployment.
func (d *Deployments) redirectWebhooks(ctx context.Context) error {
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		configurations, err := d.list(ctx, admissionv1.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			return err
		}
		for _, configuration := range configurations {
			server := d.serverOf(configuration)
			if server == nil {
				continue
			}
			if err := server.redirect(configuration); err != nil {
				return err
			}
			if err := d.env.client.Update(ctx, configuration); err != nil && !isOutdated(err) {
				return fmt.Errorf("cannot redirect the webhooks of %s to their manager: %w", configuration.GetName(), err)
			}
		}
	}
	return nil
}

// serverOf returns the server of the manager that an object refers to by its Service. It returns nil if the
// manager does not run or the object is redirected already.
func (d *Deployments) serverOf(object *unstructured.Unstructured) *webhookServer {
	namespaces := calledNamespaces(object)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.running {
		if slices.Contains(namespaces, m.deployment.Namespace) {
			return m.webhook
		}
	}
	return nil
}

// report writes the status of a Deployment.
func (d *Deployments) report(ctx context.Context, deployment *appsv1.Deployment) error {
	var replicas int32
	available := corev1.ConditionFalse
	if d.runs(deployment.UID) {
		replicas, available = 1, corev1.ConditionTrue
	}
	if deployment.Status.ObservedGeneration == deployment.Generation && deployment.Status.Replicas == replicas {
		return nil
	}
	before := client.MergeFrom(deployment.DeepCopy())
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas,
		AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: available,
			Reason: "ProcessRuns", Message: "simulated by the lab",
		}},
	}
	return d.env.client.Status().Patch(ctx, deployment, before)
}
