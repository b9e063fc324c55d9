package assistedsim

import (
	"net/http"
	"strconv"
)

// downloads serves what an InfraEnv offers for download, and nothing else of the REST API.
func (s *Simulator) downloads() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/assisted-install/v2/infra-envs/{id}/downloads/files", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		record := s.infraEnvByID(r.PathValue("id"))
		s.mu.Unlock()
		if record == nil || s.opts.BeforeDownload == nil {
			s.downloadFile(w, r)
			return
		}
		s.opts.BeforeDownload(record.key, http.HandlerFunc(s.downloadFile)).ServeHTTP(w, r)
	})
	return mux
}

func (s *Simulator) downloadFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	record := s.infraEnvByID(r.PathValue("id"))
	var fault http.HandlerFunc
	if record != nil {
		s.downloaded[record.key.Namespace]++
		fault = s.faults.downloads[record.key]
		if fault == nil {
			fault = s.faults.downloads[wholeNamespace(record.key)]
		}
		copied := *record
		record = &copied
	}
	s.mu.Unlock()
	switch {
	case fault != nil:
		fault(w, r)
		return
	case s.opts.Auth == AuthLocal && !s.tokens.Valid(presentedToken(r)):
		// A token of another InfraEnv is good enough: the real service does not check whose it is on this path.
		http.Error(w, `{"code":401,"message":"unauthenticated for invalid credentials"}`, http.StatusUnauthorized)
		return
	case record == nil:
		http.Error(w, `{"code":"404","reason":"InfraEnv not found"}`, http.StatusNotFound)
		return
	case r.URL.Query().Get("file_name") != "discovery.ign":
		http.Error(w, `{"code":"400","reason":"file_name in query should be one of [discovery.ign]"}`, http.StatusBadRequest)
		return
	}
	data, err := s.discoveryIgnition(record)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Last-Modified", record.updatedAt.UTC().Format(http.TimeFormat))
	_, _ = w.Write(data)
}

// Downloads counts how often somebody wanted a file of an InfraEnv in a namespace, whatever the answer was. Hosts get
// theirs otherwise: see [Simulator.Image].
func (s *Simulator) Downloads(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.downloaded[namespace]
}

// presentedToken: the service takes a token from the query or from its own header, never as a bearer.
func presentedToken(r *http.Request) string {
	if key := r.URL.Query().Get("api_key"); key != "" {
		return key
	}
	return r.Header.Get("X-Secret-Key")
}
