package assistedservice

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// On a hub the admission server is an aggregated API server with this group.
const (
	admissionGroup = "admission.agentinstall.openshift.io"
	admissionPath  = "/apis/" + admissionGroup + "/v1/"
)

// startAdmission starts the admission server of assisted-service and registers its webhooks.
func (s *Service) startAdmission(ctx context.Context, e *env.Env) error {
	program, err := e.Components().Program(ctx, components.AssistedAdmission)
	if err != nil {
		return err
	}
	port, err := e.Group().Port()
	if err != nil {
		return err
	}
	folder := s.file("admission")
	if err := e.Authority().ServerFiles(folder); err != nil {
		return err
	}
	kubeconfig, err := e.AdminKubeconfig("assisted-service-webadmission", folder)
	if err != nil {
		return err
	}
	s.admission = e.Group().New("assisted-service-webadmission", process.Clients, program,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--authentication-skip-lookup",
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port),
		"--tls-cert-file="+filepath.Join(folder, "tls.crt"),
		"--tls-private-key-file="+filepath.Join(folder, "tls.key"),
		"--enable-priority-and-fairness=false",
	)
	server := "https://127.0.0.1:" + strconv.Itoa(port)
	s.admission.Ready = process.Probe(e.Authority().HTTPClient(), server+"/readyz")
	if err := e.Group().Start(ctx, s.admission); err != nil {
		return err
	}
	objects := append(allowAllCallers(), admissionWebhooks(server+admissionPath, e.Authority().PEM())...)
	for _, object := range objects {
		if err := client.IgnoreAlreadyExists(e.Client().Create(ctx, object)); err != nil {
			return fmt.Errorf("cannot register the admission webhooks of assisted-service: %w", err)
		}
	}
	return nil
}

// allowAllCallers returns the rights for unauthenticated calls of the admission server, which checks its
// callers with the API server. The API server has no credentials for a server that is not aggregated.
func allowAllCallers() []client.Object {
	meta := metav1.ObjectMeta{Name: admissionGroup + ":anonymous"}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{admissionGroup}, Resources: []string{"*"}, Verbs: []string{"create"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:anonymous"}},
		},
	}
}

// admissionWebhooks returns the webhooks that the operator of assisted-service registers
// (internal/controller/controllers/agentserviceconfig_controller.go), with the direct URL of their server.
func admissionWebhooks(url string, ca []byte) []client.Object {
	const create, update = admissionv1.Create, admissionv1.Update
	mutator := "agentclusterinstallmutators"
	objects := []client.Object{&admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: mutator + "." + admissionGroup},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name:                    mutator + "." + admissionGroup,
			ClientConfig:            admissionv1.WebhookClientConfig{URL: ptr.To(url + mutator), CABundle: ca},
			Rules:                   admissionRules("extensions.hive.openshift.io", "agentclusterinstalls", create, update),
			FailurePolicy:           ptr.To(admissionv1.Fail),
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}}
	for validator, rules := range map[string][]admissionv1.RuleWithOperations{
		"agentclusterinstallvalidators": admissionRules("extensions.hive.openshift.io", "agentclusterinstalls", create, update),
		"infraenvvalidators":            admissionRules("agent-install.openshift.io", "infraenvs", create, update),
		"agentvalidators":               admissionRules("agent-install.openshift.io", "agents", update),
	} {
		objects = append(objects, &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: validator + "." + admissionGroup},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name:                    validator + "." + admissionGroup,
				ClientConfig:            admissionv1.WebhookClientConfig{URL: ptr.To(url + validator), CABundle: ca},
				Rules:                   rules,
				FailurePolicy:           ptr.To(admissionv1.Fail),
				SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			}},
		})
	}
	return objects
}

func admissionRules(group, resource string, operations ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1beta1"}, Resources: []string{resource}},
	}}
}
