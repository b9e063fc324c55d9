package assistedsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// refusal is the error of a webhook that denies a request.
type refusal struct {
	code    int32
	message string
}

func (r refusal) Error() string { return r.message }

func refuse(code int32, format string, args ...any) error {
	return refusal{code: code, message: fmt.Sprintf(format, args...)}
}

// admission serves the webhooks that [Simulator.InstallWebhooks] registers.
func (s *Simulator) admission() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /agentclusterinstallmutators", review(s.mutateInstall))
	mux.HandleFunc("POST /agentclusterinstallvalidators", review(func(ctx context.Context, req *admissionv1.AdmissionRequest) ([]byte, error) {
		return nil, validate(ctx, req, validateInstall)
	}))
	mux.HandleFunc("POST /infraenvvalidators", review(func(ctx context.Context, req *admissionv1.AdmissionRequest) ([]byte, error) {
		return nil, validate(ctx, req, s.validateInfraEnv)
	}))
	mux.HandleFunc("POST /agentvalidators", review(func(ctx context.Context, req *admissionv1.AdmissionRequest) ([]byte, error) {
		return nil, validate(ctx, req, validateAgent)
	}))
	return mux
}

type reviewer func(context.Context, *admissionv1.AdmissionRequest) (patch []byte, err error)

// review answers an AdmissionReview with a patch or a denial.
func review(decide reviewer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request == nil {
			http.Error(w, "cannot decode AdmissionReview", http.StatusBadRequest)
			return
		}
		out := &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true}
		patch, err := decide(r.Context(), in.Request)
		if err != nil {
			status := refusal{code: http.StatusInternalServerError, message: err.Error()}
			errors.As(err, &status)
			out.Allowed = false
			out.Result = &metav1.Status{
				Status: metav1.StatusFailure, Code: status.code, Message: status.message, Reason: reasonOf(status.code),
			}
		}
		if patch != nil {
			out.Patch, out.PatchType = patch, ptr.To(admissionv1.PatchTypeJSONPatch)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: out})
	}
}

func reasonOf(code int32) metav1.StatusReason {
	switch code {
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusBadRequest:
		return metav1.StatusReasonBadRequest
	}
	return metav1.StatusReasonInternalError
}

// validate decodes the old (nil on creation) and the new object.
func validate[T any](ctx context.Context, req *admissionv1.AdmissionRequest,
	rules func(ctx context.Context, before, after *T) error,
) error {
	after := new(T)
	if err := json.Unmarshal(req.Object.Raw, after); err != nil {
		return fmt.Errorf("cannot decode object: %w", err)
	}
	var before *T
	if req.Operation == admissionv1.Update {
		before = new(T)
		if err := json.Unmarshal(req.OldObject.Raw, before); err != nil {
			return fmt.Errorf("cannot decode old object: %w", err)
		}
	}
	return rules(ctx, before, after)
}

func (s *Simulator) mutateInstall(_ context.Context, req *admissionv1.AdmissionRequest) ([]byte, error) {
	aci := &hiveext.AgentClusterInstall{}
	if err := json.Unmarshal(req.Object.Raw, aci); err != nil {
		return nil, fmt.Errorf("cannot decode object: %w", err)
	}
	value, ok := defaultNetworking(aci)
	if !ok {
		return nil, nil
	}
	return json.Marshal([]map[string]any{{
		"op": "add", "path": "/spec/networking/userManagedNetworking", "value": value,
	}})
}

// InstallWebhooks registers the simulator's admission webhooks with the API server. Without them the API server
// accepts the requests that the webhooks of the real service deny. The registration outlives the simulator.
func (s *Simulator) InstallWebhooks(ctx context.Context) error {
	installs := []string{"agentclusterinstalls"}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "agentclusterinstallmutators.admission.agentinstall.openshift.io"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "agentclusterinstallmutators.admission.agentinstall.openshift.io",
			ClientConfig:            s.webhookClient("/agentclusterinstallmutators"),
			Rules:                   webhookRules(hiveext.Group, installs),
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "admission.agentinstall.openshift.io"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			s.validatingWebhook("agentclusterinstallvalidators", hiveext.Group, installs),
			s.validatingWebhook("infraenvvalidators", aiv1beta1.GroupVersion.Group, []string{"infraenvs"}),
			s.validatingWebhook("agentvalidators", aiv1beta1.GroupVersion.Group, []string{"agents"}),
		},
	}
	for _, config := range []client.Object{mutating, validating} {
		if err := s.client.Delete(ctx, config); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot replace webhook configuration %s: %w", config.GetName(), err)
		}
		config.SetResourceVersion("")
		if err := s.client.Create(ctx, config); err != nil {
			return fmt.Errorf("cannot create webhook configuration %s: %w", config.GetName(), err)
		}
	}
	return nil
}

func (s *Simulator) validatingWebhook(name, group string, resources []string) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    name + ".admission.agentinstall.openshift.io",
		ClientConfig:            s.webhookClient("/" + name),
		Rules:                   webhookRules(group, resources),
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func (s *Simulator) webhookClient(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(s.webhookURL + path), CABundle: s.ca.PEM()}
}

func webhookRules(group string, resources []string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"v1beta1"}, Resources: resources,
		},
	}}
}
