package env

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
)

// Names of the managers for Env.Manager.
const (
	// Core is the Cluster API core manager.
	Core = "cluster-api"
	// Metal3 is the Metal3 infrastructure provider.
	Metal3 = "capm3"
	// BareMetal is the Bare Metal Operator.
	BareMetal = "baremetal-operator"
	// Bootstrap and ControlPlane are the managers of this repository.
	Bootstrap    = "bootstrap"
	ControlPlane = "controlplane"
)

// WorkloadUserAgent is the user agent of the manager ControlPlane for workload clusters. No other manager of
// this repository connects to them.
const WorkloadUserAgent = "openshift-agent-control-plane"

// tokenLifetime is longer than any run.
const tokenLifetime = 24 * 60 * 60

// ManagerOptions configure a manager.
type ManagerOptions struct {
	// Disabled leaves out the manager with its CRDs and RBAC.
	Disabled bool
	// ExtraArgs follow the arguments of the shipped Deployment and those of the environment. The last value of
	// a repeated flag counts.
	ExtraArgs []string
	// Env are additional environment variables, as NAME=value.
	Env []string
	// Variables are values for the ${VARIABLES} in the manifests, which clusterctl replaces on installation.
	Variables map[string]string
	// Manifests is the folder in config/<manager> to install instead of default, for managers of this
	// repository.
	Manifests string
	// AllVersions installs all versions of the manager's kinds. Otherwise only the stored version is installed:
	// see [onlyStored].
	AllVersions bool
}

// manager is a controller manager that is installed from its manifests. All objects are applied except the
// Deployment and the requests to cert-manager for certificates. The container of the Deployment runs as a
// process with its ServiceAccount.
type manager struct {
	name    string
	options ManagerOptions
	// program builds the program, and manifests renders the manifests.
	program   func(context.Context) (string, error)
	manifests func(context.Context) ([]byte, error)

	objects    []*unstructured.Unstructured
	configMaps map[string]*corev1.ConfigMap
	deployment *appsv1.Deployment
	webhook    *webhookServer
	process    *process.Process
}

// load renders the manifests and prepares the process: ports, certificates, arguments.
func (m *manager) load(ctx context.Context, e *Env) error {
	manifests, err := m.manifests(ctx)
	if err != nil {
		return err
	}
	objects, err := decode(substitute(manifests, m.options.Variables))
	if err != nil {
		return err
	}
	m.configMaps = map[string]*corev1.ConfigMap{}
	for _, object := range objects {
		if err := m.sort(object); err != nil {
			return err
		}
	}
	if m.deployment == nil || len(m.deployment.Spec.Template.Spec.Containers) == 0 {
		return errors.New("the manifests have no Deployment with a container")
	}
	return m.prepare(ctx, e)
}

// sort processes an object of the manifests.
func (m *manager) sort(object *unstructured.Unstructured) error {
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	switch object.GetKind() {
	case "Certificate", "Issuer", "Service": // no cert-manager and no cluster network exist
		return nil
	case "Deployment":
		m.deployment = &appsv1.Deployment{}
		return convert(object.Object, m.deployment)
	case "ConfigMap":
		configMap := &corev1.ConfigMap{}
		if err := convert(object.Object, configMap); err != nil {
			return fmt.Errorf("cannot read ConfigMap %s: %w", object.GetName(), err)
		}
		m.configMaps[configMap.Name] = configMap
	case crdKind:
		if m.options.AllVersions {
			break
		}
		if err := onlyStored(object); err != nil {
			return err
		}
	}
	m.objects = append(m.objects, object)
	return nil
}

func (m *manager) prepare(ctx context.Context, e *Env) error {
	program, err := m.program(ctx)
	if err != nil {
		return err
	}
	var ports [3]int
	for i := range ports {
		if ports[i], err = e.group.Port(); err != nil {
			return err
		}
	}
	diagnostics, health, webhooks := "127.0.0.1:"+strconv.Itoa(ports[0]), "127.0.0.1:"+strconv.Itoa(ports[1]), strconv.Itoa(ports[2])
	folder := filepath.Join(e.group.Temp(), m.name)
	if err := e.api.ca.ServerFiles(folder); err != nil {
		return err
	}
	m.webhook = &webhookServer{url: "https://127.0.0.1:" + webhooks, caBundle: e.api.ca.PEM()}
	container := m.deployment.Spec.Template.Spec.Containers[0]
	environment, err := m.environment(container)
	if err != nil {
		return err
	}
	args := slices.Concat(container.Args, []string{
		"--leader-elect=false", // a killed manager would keep its lease for 15 s
		"--diagnostics-address=" + diagnostics,
		"--insecure-diagnostics=true",
		"--health-addr=" + health,
	})
	if slices.ContainsFunc(m.objects, hasWebhook) || slices.ContainsFunc(container.Ports, isWebhookPort) {
		args = append(args, "--webhook-port="+webhooks, "--webhook-cert-dir="+folder)
	}
	m.process = e.group.New(m.name, process.Clients, program, append(args, m.options.ExtraArgs...)...)
	m.process.MetricsURL = "http://" + diagnostics + "/metrics"
	m.process.User = "system:serviceaccount:" + m.deployment.Namespace + ":" + m.serviceAccount()
	m.process.Env = slices.Concat(environment, []string{"KUBECONFIG=" + filepath.Join(folder, "kubeconfig")}, m.options.Env)
	m.process.Ready = process.Probe(http.DefaultClient, "http://"+health+"/readyz")
	for _, object := range m.objects {
		if err := m.webhook.redirect(object); err != nil {
			return err
		}
	}
	return nil
}

// isWebhookPort reports whether a port belongs to a server without webhook configuration: a runtime extension.
func isWebhookPort(port corev1.ContainerPort) bool {
	return port.Name == "webhook-server"
}

func hasWebhook(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return true
	case crdKind:
		_, found, _ := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook")
		return found
	}
	return false
}

// environment returns the variables of the container in a cluster.
func (m *manager) environment(container corev1.Container) ([]string, error) {
	var result []string
	for _, source := range container.EnvFrom {
		if source.ConfigMapRef == nil || m.configMaps[source.ConfigMapRef.Name] == nil {
			return nil, errors.New("the container gets variables from another source than a ConfigMap of the manifests")
		}
		for name, value := range m.configMaps[source.ConfigMapRef.Name].Data {
			result = append(result, source.Prefix+name+"="+value)
		}
	}
	for _, variable := range container.Env {
		value := variable.Value
		switch {
		case variable.ValueFrom == nil:
		case variable.ValueFrom.ResourceFieldRef != nil && variable.ValueFrom.ResourceFieldRef.Resource == "limits.memory":
			value = strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10)
		case variable.ValueFrom.FieldRef == nil:
			return nil, fmt.Errorf("variable %s of the container has a source that is not supported here", variable.Name)
		case variable.ValueFrom.FieldRef.FieldPath == "metadata.namespace":
			value = m.deployment.Namespace
		default: // name and uid of the Pod
			value = m.deployment.Name
		}
		result = append(result, variable.Name+"="+value)
	}
	return result, nil
}

func (m *manager) serviceAccount() string {
	return m.deployment.Spec.Template.Spec.ServiceAccountName
}

// start runs the process with the credentials of its ServiceAccount.
func (m *manager) start(ctx context.Context, e *Env) error {
	if err := m.awaitAggregation(ctx, e.client); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: m.deployment.Namespace, Name: m.serviceAccount()}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenLifetime)}}
	if err := e.client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("cannot create a token for %s: %w", m.process.User, err)
	}
	path := filepath.Join(e.group.Temp(), m.name, "kubeconfig")
	if err := writeKubeconfig(path, e.api.kubeconfig(m.name, &clientcmdapi.AuthInfo{Token: request.Status.Token})); err != nil {
		return err
	}
	return e.group.Start(ctx, m.process)
}

// awaitAggregation waits until the aggregated ClusterRoles of the manifests have their rules. A manager that
// starts earlier is denied and backs off. A role without sources stays empty.
func (m *manager) awaitAggregation(ctx context.Context, c client.Client) error {
	for _, object := range m.objects {
		added, err := hasSources(ctx, c, object)
		if err != nil {
			return err
		}
		if !added {
			continue
		}
		err = wait.PollUntilContextTimeout(ctx, settleInterval, settleTimeout, true, func(ctx context.Context) (bool, error) {
			role := &rbacv1.ClusterRole{}
			err := c.Get(ctx, client.ObjectKeyFromObject(object), role)
			return len(role.Rules) > 0, err
		})
		if err != nil {
			return fmt.Errorf("ClusterRole %s got no rules: %w", object.GetName(), err)
		}
	}
	return nil
}

// hasSources reports whether ClusterRoles for an aggregated one exist.
func hasSources(ctx context.Context, c client.Client, object *unstructured.Unstructured) (bool, error) {
	if object.GetKind() != "ClusterRole" {
		return false, nil
	}
	role := &rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil || role.AggregationRule == nil {
		return false, err
	}
	for _, labels := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&labels)
		if err != nil {
			return false, fmt.Errorf("ClusterRole %s: %w", role.Name, err)
		}
		sources := &rbacv1.ClusterRoleList{}
		if err := c.List(ctx, sources, client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return false, fmt.Errorf("cannot list the sources of ClusterRole %s: %w", role.Name, err)
		}
		if len(sources.Items) > 0 {
			return true, nil
		}
	}
	return false, nil
}
