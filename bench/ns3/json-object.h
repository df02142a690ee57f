// A JSON writer, just enough to print one result.

#ifndef WEIR_JSON_OBJECT_H
#define WEIR_JSON_OBJECT_H

#include <cmath>
#include <sstream>
#include <string>
#include <type_traits>

namespace weir
{

class JsonObject
{
  public:
    template <typename T>
    JsonObject& Number(const std::string& key, T value)
    {
        std::ostringstream text;
        text.precision(12);
        if constexpr (std::is_floating_point_v<T>)
        {
            // JSON knows no NaN and no infinity.
            std::isfinite(value) ? text << value : text << "null";
        }
        else
        {
            text << value;
        }
        return Member(key, text.str());
    }

    JsonObject& Boolean(const std::string& key, bool value)
    {
        return Member(key, value ? "true" : "false");
    }

    // `value` needs no escapes: it is a constant of this program.
    JsonObject& Word(const std::string& key, const std::string& value)
    {
        return Member(key, '"' + value + '"');
    }

    JsonObject& Object(const std::string& key, const JsonObject& value)
    {
        return Member(key, value.Text());
    }

    std::string Text() const
    {
        return '{' + m_members + '}';
    }

  private:
    JsonObject& Member(const std::string& key, const std::string& value)
    {
        m_members += (m_members.empty() ? "\"" : ", \"") + key + "\": " + value;
        return *this;
    }

    std::string m_members;
};

} // namespace weir

#endif
