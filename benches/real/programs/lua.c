/* The Lua interpreter: runs the script in its first argument, with the second as the global N. */
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    lua_State *state = luaL_newstate();
    if (state == NULL || argc < 3)
        return 2;
    luaL_openlibs(state);
    lua_pushinteger(state, atol(argv[2]));
    lua_setglobal(state, "N");
    if (luaL_dofile(state, argv[1])) {
        fprintf(stderr, "%s\n", lua_tostring(state, -1));
        return 1;
    }
    lua_close(state);
    return 0;
}
