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

// deploymentsInterval is how often the Deployments are looked at: a kubelet is no faster.
const deploymentsInterval = 500 * time.Millisecond

// Image is what stands for a container image: a program that is built.
type Image struct {
	// Name is the name of its process and of its log.
	Name string
	// Program is its path.
	Program string
	// ExtraArgs follow those of the Deployment and of the environment, as [ManagerOptions.ExtraArgs].
	ExtraArgs []string
}

// Deployments runs the managers whose Deployments somebody else makes, changes and deletes, as clusterctl does, in an
// environment with [Options.NoManagers]. It plays the parts of a cluster that an API server alone does not have:
//   - Deployment controller and kubelet: the container of each Deployment is a process, as long as the Deployment wants a replica, under the ServiceAccount that the
//     Deployment names and with the arguments and variables that it has, besides those of the environment. The status of the Deployment tells of it.
//   - the network of Services, and what cert-manager does by certificates and the injection of their authorities: what asks for a webhook or a conversion by the Service of
//     a manager is led to its process.
//
// Everything else is as it was installed.
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
			if err := d.look(ctx); err != nil && ctx.Err() == nil {
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

// Stop leaves the Deployments alone from now on. The processes end with the environment.
func (d *Deployments) Stop() {
	d.end()
	<-d.done
}

// Process is the manager that runs under a name now; nil while there is none.
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

// Failure is why Deployments are not run any more; nil while they are.
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

// look compares what runs with what the Deployments want.
func (d *Deployments) look(ctx context.Context) error {
	list := &appsv1.DeploymentList{}
	if err := d.env.client.List(ctx, list); err != nil {
		return fmt.Errorf("cannot list the Deployments: %w", err)
	}
	d.stopOthers(list.Items)
	for i := range list.Items {
		if err := d.serve(ctx, &list.Items[i]); err != nil && !isOutdated(err) {
			return fmt.Errorf("cannot run Deployment %s: %w", client.ObjectKeyFromObject(&list.Items[i]), err)
		}
	}
	return d.redirectWebhooks(ctx)
}

// isOutdated tells of an error that comes of a change or deletion since the look: the next look sees it.
func isOutdated(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

func wantsReplica(deployment *appsv1.Deployment) bool {
	return deployment.DeletionTimestamp.IsZero() && (deployment.Spec.Replicas == nil || *deployment.Spec.Replicas > 0)
}

// stopOthers stops what no Deployment wants, and what another version of its Deployment wanted.
func (d *Deployments) stopOthers(wanted []appsv1.Deployment) {
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

// serve runs the Deployment if it does not run, and tells so in its status.
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

// load prepares the process of a Deployment, and leads conversions to it: CRDs are installed before Deployments.
func (d *Deployments) load(ctx context.Context, deployment *appsv1.Deployment) (*manager, error) {
	containers := deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		return nil, fmt.Errorf("%d containers, not one", len(containers))
	}
	image, known := d.images[containers[0].Image]
	if !known {
		return nil, fmt.Errorf("there is no image %s", containers[0].Image)
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
				return nil, fmt.Errorf("cannot lead the conversion of %s to its manager: %w", object.GetName(), err)
			}
		}
	}
	return m, nil
}

// list lists all objects of a kind.
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

// calledNamespaces are those of the Services by which an object has a manager called.
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

// redirectWebhooks leads the webhooks of what runs to its process. They may be installed after the Deployment.
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
				return fmt.Errorf("cannot lead the webhooks of %s to their manager: %w", configuration.GetName(), err)
			}
		}
	}
	return nil
}

// serverOf is the server of the manager that an object has called by its Service; nil while that does not run, or when
// it is led there already.
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
			Reason: "ProcessRuns", Message: "played by the laboratory",
		}},
	}
	return d.env.client.Status().Patch(ctx, deployment, before)
}
