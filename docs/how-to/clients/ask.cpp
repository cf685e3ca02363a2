// A client of `ttsim ask --socket PATH` in C++17, in the shape of a runtime predictor: nanoseconds, or 0 if unknown.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

class Asker {
   public:
    explicit Asker(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
        connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    }
    ~Asker() { ::close(socket_); }

    bool connected() const { return connected_; }

    // One line of JSON in, one line of JSON out; empty where nobody answers.
    std::string ask(const std::string& question) {
        const std::string line = question + "\n";
        for (std::size_t sent = 0; connected_ && sent < line.size();) {
            const ssize_t now = ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
            connected_ = now > 0;
            sent += connected_ ? static_cast<std::size_t>(now) : 0;
        }
        while (connected_ && rest_.find('\n') == std::string::npos) {
            char bytes[65536];
            const ssize_t got = ::recv(socket_, bytes, sizeof(bytes), 0);
            connected_ = got > 0;
            rest_.append(bytes, connected_ ? static_cast<std::size_t>(got) : 0);
        }
        const std::size_t end = rest_.find('\n');
        const std::string answer = end == std::string::npos ? "" : rest_.substr(0, end);
        rest_.erase(0, end == std::string::npos ? end : end + 1);
        return answer;
    }

    // kwargs: a JSON object; a tensor is {"tensor_json": <what tt-metal's to_json writes>}.
    uint64_t get_runtime_from_model(const std::string& op_name, const std::string& kwargs) {
        const std::string answer =
            ask(R"({"ask":"model","device":"n150","op":")" + op_name + R"(","kwargs":)" + kwargs + "}");
        const std::string key = "\"model\":";
        const std::size_t at = answer.find(key);
        return at == std::string::npos ? 0 : std::stoull(answer.substr(at + key.size()));
    }

   private:
    int socket_;
    bool connected_ = false;
    std::string rest_;
};

int main(int count, char** words) {
    if (count != 2) {
        return std::fprintf(stderr, "usage: %s SOCKET\n", words[0]), 2;
    }
    Asker asker(words[1]);
    if (!asker.connected()) {
        return std::fprintf(stderr, "%s: nobody answers at %s\n", words[0], words[1]), 1;
    }
    const std::string tensor = R"({"tensor_spec":{"logical_shape":[1,16,256,64],"tensor_layout":{"dtype":0,)"
                               R"("memory_config":{"buffer_type":0,"memory_layout":0}}}})";
    for (const char* name : {"ttnn::exp", "ttnn::no_such_operation"}) {
        const auto runtime = asker.get_runtime_from_model(name, R"({"tensor_json":)" + tensor + "}");
        std::printf("%s %llu ns\n", name, static_cast<unsigned long long>(runtime));
    }
}
