package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/payload"
)

// releases is a registry of release images, which only its own authority makes trusted.
type releases struct {
	*world
	t          *testing.T
	server     *httptest.Server
	host, ca   string
	credential atomic.Bool // requests need the credentials user:pass
}

// newReleases starts a registry. The user has no credentials, and does not trust its authority.
func newReleases(t *testing.T) *releases {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, variable := range []string{"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE"} {
		t.Setenv(variable, "")
	}
	r := &releases{world: newWorld(t, interceptor.Funcs{}), t: t}
	served := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if user, password, _ := request.BasicAuth(); r.credential.Load() && user+":"+password != "user:pass" {
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		served.ServeHTTP(w, request)
	}))
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.server.StartTLS()
	t.Cleanup(r.server.Close)
	r.host = r.server.Listener.Addr().String()
	r.userFile("HOME/ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})))
	r.ca = filepath.Join(os.Getenv("HOME"), "ca.pem")
	return r
}

// userFile writes a file of the user, below the folder in a variable: HOME/text. Without a name it does nothing. The
// folder of another variable than HOME is set as well, that of REGISTRY_AUTH_FILE as the whole path.
func (r *releases) userFile(path, content string) {
	r.t.Helper()
	if path == "" {
		return
	}
	variable, rest, _ := strings.Cut(path, "/")
	folder := os.Getenv(variable)
	if variable != "HOME" {
		folder = r.t.TempDir()
		r.t.Setenv(variable, folder)
	}
	file := filepath.Join(folder, rest)
	if variable == "REGISTRY_AUTH_FILE" {
		r.t.Setenv(variable, file)
	}
	r.Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
	r.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
}

// push writes an image with a tag, and returns its digest.
func (r *releases) push(tag string, image v1.Image) string {
	r.t.Helper()
	ref, err := name.ParseReference(r.host + "/ocp/release:" + tag)
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(remote.Write(ref, image, remote.WithTransport(r.server.Client().Transport))).To(Succeed())
	digest, err := image.Digest()
	r.Expect(err).NotTo(HaveOccurred())
	return digest.String()
}

func (r *releases) pushRelease(tag string, of payload.Release) string {
	r.t.Helper()
	image, err := payload.Image(of)
	r.Expect(err).NotTo(HaveOccurred())
	return r.push(tag, image)
}

// versions runs the command versions, and returns its exit code.
func (r *releases) versions(args ...string) int {
	return r.run(r.t.Context(), append([]string{"versions", "--registry-ca-file", r.ca, "--repository", r.host + "/ocp/release"}, args...)...)
}

var release419 = payload.Release{Version: "4.19.10", Kubernetes: "1.32.7"}

func TestVersionsOfARelease(t *testing.T) {
	r := newReleases(t)
	digest := r.pushRelease("4.19.10-x86_64", release419)
	arm := r.pushRelease("4.19.10-aarch64", payload.Release{Version: "4.19.10", Kubernetes: "1.32.7", Architecture: "aarch64"})
	image := r.host + "/ocp/release"
	for _, argument := range []string{"4.19.10", "v4.19.10", image + ":4.19.10-x86_64", image + "@" + digest} {
		r.Expect(r.versions(argument)).To(Equal(exitDone), r.err.String())
		r.Expect(r.out.String()).To(Equal(""+
			"distributionVersion:  4.19.10\n"+
			"version:              v1.32.7\n"+
			"releaseImage:         "+image+"@"+digest+"\n"), argument)
		r.Expect(r.err.String()).To(BeEmpty())
	}
	r.Expect(r.versions("4.19.10", "--architecture", "arm64", "-o", "jsonpath={.digest}")).To(Equal(exitDone))
	r.Expect(r.out.String()).To(Equal(arm))
	r.Expect(r.versions("4.19.10", "-o", "yaml")).To(Equal(exitDone))
	r.Expect(r.out.String()).To(Equal("" +
		"apiVersion: kubectl.openshift-agent/v1alpha1\n" +
		"digest: " + digest + "\n" +
		"distributionVersion: 4.19.10\n" +
		"kind: ReleaseVersions\n" +
		"kubernetesVersion: v1.32.7\n" +
		"releaseImage: " + image + "@" + digest + "\n" +
		"version: v1.32.7\n"))
}

// The value would not be that of the kubelets byte by byte.
func TestReleaseWhoseKubeletsReportAHash(t *testing.T) {
	r := newReleases(t)
	r.pushRelease("4.16.2-x86_64", payload.Release{Version: "4.16.2", Kubernetes: "1.29.6"})
	r.Expect(r.versions("4.16.2", "-o", "json")).To(Equal(exitDone))
	found := map[string]any{}
	r.Expect(json.Unmarshal(r.out.Bytes(), &found)).To(Succeed())
	r.Expect(found).To(And(HaveKeyWithValue("kubernetesVersion", "v1.29.6"), Not(HaveKey("version"))))
	r.Expect(r.versions("4.16.2")).To(Equal(exitDone))
	r.Expect(r.out.String()).To(ContainSubstring("\nversion:              not in the image (Kubernetes v1.29.6)\n"))
	r.Expect(r.err.String()).To(ContainSubstring("(v1.29.6+HASH). Read the version from a Node"))
}

func TestImagesWithoutTheVersionsOfTheRelease(t *testing.T) {
	r := newReleases(t)
	r.pushRelease("4.19.11-x86_64", release419)
	r.pushRelease("4.17.30-x86_64", payload.Release{Version: "4.17.30", Kubernetes: "1.29.14"})
	r.pushRelease("4.19.12-x86_64", payload.Release{Version: "4.19.12"})
	r.pushRelease("unnamed", payload.Release{Version: "stable", Kubernetes: "1.32.7"})
	r.push("4.19.13-x86_64", empty.Image)
	for argument, message := range map[string]string{
		"4.19.11":                       "image " + r.host + "/ocp/release:4.19.11-x86_64 states release 4.19.10, not 4.19.11.",
		"4.17.30":                       "it states v1.29.14, which OpenShift 4.17 does not have",
		"4.19.12":                       "no tag of release-manifests/image-references has kubernetes",
		"4.19.13":                       "so it is no release image",
		"4.99.0":                        "cannot read release image " + r.host + "/ocp/release:4.99.0-x86_64: the registry has no such image",
		"4.19":                          "is not a release such as 4.19.3",
		r.host + "/ocp/release:unnamed": `states no release: version "stable"`,
		r.host + "/ocp/release":         "neither a version such as 4.19.10, nor an image",
		"lab/release:4.19.10":           "neither a version such as 4.19.10, nor an image",
	} {
		r.Expect(r.versions(argument)).To(Equal(exitError), argument)
		r.Expect(r.err.String()).To(And(HavePrefix("error: "), ContainSubstring(message)))
		r.Expect(r.out.String()).To(BeEmpty())
	}
}

// The values are base64 of user:pass and hush:hush.
const rightAuth, wrongAuth = "dXNlcjpwYXNz", "aHVzaDpodXNo"

// pullSecret returns a pull secret for the registry.
func (r *releases) pullSecret(auth string) string {
	return `{"auths":{"` + r.host + `/ocp":{"auth":"` + auth + `"}}}`
}

// createSecret creates a Secret with one key in namespace lab.
func (r *releases) createSecret(name, key, value string) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "lab", "name": name},
		"data": map[string]any{key: base64.StdEncoding.EncodeToString([]byte(value))},
	}}
	r.Expect(r.Create(r.t.Context(), secret)).To(Succeed())
}

func TestCredentialsOfVersions(t *testing.T) {
	const podman, docker = "XDG_RUNTIME_DIR/containers/auth.json", "DOCKER_CONFIG/config.json"
	for situation, tc := range map[string]struct {
		right, wrong string // the files with these credentials, below the folders of variables
		args         []string
		failure      string // "" if the credentials are right
	}{
		"Secret":                       {"", docker, []string{"--pull-secret", "right"}, ""},
		"file":                         {"HOME/right.json", docker, []string{"--pull-secret-file", "HOME/right.json"}, ""},
		"docker":                       {docker, "", nil, ""},
		"docker without DOCKER_CONFIG": {"HOME/.docker/config.json", "", nil, ""},
		"podman":                       {podman, docker, nil, ""},
		"podman without a session":     {"XDG_CONFIG_HOME/containers/auth.json", docker, nil, ""},
		"podman without XDG variables": {"HOME/.config/containers/auth.json", docker, nil, ""},
		"variable":                     {"REGISTRY_AUTH_FILE/x.json", podman, nil, ""},
		"none":                         {"", "", nil, "401 Unauthorized). No credentials for the registry were found. Set --pull-secret"},
		"wrong":                        {"", docker, nil, "401 Unauthorized). Check the credentials, or set --pull-secret"},
		"wrong Secret":                 {docker, "", []string{"--pull-secret", "wrong"}, "Check the credentials"},
		"missing Secret": {
			docker, "", []string{"--pull-secret", "none"}, `cannot read the pull secret: secrets "none" not found`,
		},
		"Secret of another type": {
			docker, "", []string{"--pull-secret", "opaque"}, "key .dockerconfigjson of Secret lab/opaque does not exist",
		},
		"Secret without docker config": {
			docker, "", []string{"--pull-secret", "text"}, "key .dockerconfigjson of Secret lab/text: the value is not a docker config",
		},
		"missing file":               {docker, "", []string{"--pull-secret-file", "/none"}, "open /none: no such file or directory"},
		"file without docker config": {docker, "", []string{"--pull-secret-file", "HOME/text"}, "/text: the value is not a docker config"},
		"large file":                 {docker, "", []string{"--pull-secret-file", "HOME/large"}, "/large has more than 1 MiB"},
		"two flags":                  {docker, "", []string{"--pull-secret", "right", "--pull-secret-file", "x"}, "were all set"},
		"file without this registry": {
			docker, "", []string{"--pull-secret-file", "HOME/other"}, "No credentials for the registry were found",
		},
		"authorities that are no PEM":   {docker, "", []string{"--registry-ca-file", "HOME/text"}, "/text has no PEM certificate"},
		"authorities that do not exist": {docker, "", []string{"--registry-ca-file", "/none"}, "open /none: no such file or directory"},
	} {
		t.Run(situation, func(t *testing.T) {
			r := newReleases(t)
			r.pushRelease("4.19.10-x86_64", release419)
			r.credential.Store(true)
			r.userFile("HOME/text", wrongAuth)
			r.userFile("HOME/large", r.pullSecret(rightAuth)+strings.Repeat(" ", maxFile))
			r.userFile("HOME/other", `{"auths":{"quay.io":{"auth":"`+wrongAuth+`"}}}`)
			r.userFile(tc.right, r.pullSecret(rightAuth))
			r.userFile(tc.wrong, r.pullSecret(wrongAuth))
			r.createSecret("right", ".dockerconfigjson", r.pullSecret(rightAuth))
			r.createSecret("wrong", ".dockerconfigjson", r.pullSecret(wrongAuth))
			r.createSecret("text", ".dockerconfigjson", wrongAuth)
			r.createSecret("opaque", "auth", wrongAuth)
			args := []string{"4.19.10"}
			for _, arg := range tc.args {
				args = append(args, strings.Replace(arg, "HOME", os.Getenv("HOME"), 1))
			}
			want := exitDone
			if tc.failure != "" {
				want = exitError
			}
			r.Expect(r.versions(args...)).To(Equal(want), r.err.String())
			r.Expect(r.err.String()).To(ContainSubstring(tc.failure))
			r.Expect(r.err.String()).NotTo(Or(ContainSubstring(rightAuth), ContainSubstring(wrongAuth)))
		})
	}
}

// podman and docker may be logged in to different registries.
func TestFileWithoutTheRegistryIsSkipped(t *testing.T) {
	r := newReleases(t)
	r.pushRelease("4.19.10-x86_64", release419)
	r.credential.Store(true)
	r.userFile("XDG_RUNTIME_DIR/containers/auth.json", `{"auths":{"quay.io":{"auth":"`+wrongAuth+`"}}}`)
	r.userFile("DOCKER_CONFIG/config.json", r.pullSecret(rightAuth))
	r.Expect(r.versions("4.19.10")).To(Equal(exitDone), r.err.String())
}

// A host on the path of a request could read the credentials.
func TestVersionsSendsNothingOverPlainHTTP(t *testing.T) {
	r := newReleases(t)
	requests := atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	r.Expect(r.versions("4.19.10", "--repository", host+"/ocp/release")).To(Equal(exitError))
	r.Expect(r.err.String()).To(HaveSuffix(": " + host + " does not speak TLS. The command sends no request over plain HTTP\n"))
	r.Expect(requests.Load()).To(BeZero())
}

func TestVersionsQuotesNoURL(t *testing.T) {
	r := newReleases(t)
	for _, argument := range []string{
		"https://user:hush@quay.io/ocp/release:4.19.10", "user:hush@quay.io/ocp/release", "quay.io/ocp/release:hush?",
	} {
		r.Expect(r.versions(argument)).To(Equal(exitError))
		r.Expect(r.err.String()).To(And(ContainSubstring("neither a version"), Not(ContainSubstring("hush"))))
	}
}

func TestInterruptEndsVersions(t *testing.T) {
	r := newReleases(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Expect(r.run(ctx, "versions", "4.19.10", "--repository", r.host+"/ocp/release")).To(Equal(exitError))
	r.Expect(r.err.String()).To(Equal("error: context canceled\n"))
}
